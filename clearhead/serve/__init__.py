"""A translation service that can be left alone: a front process without torch, and an engine process that it restarts.

options         where it listens, and the limits that /v1/info shows
server          binding, signals, draining: `clearhead serve`
protocol        HTTP/1.1 on uvicorn with deadlines for slow senders and slow readers
app             the routes, and the gate that every request passes: host, origin, key, size
bodies          a request's bytes -> checked values
requests        what /v1 takes, as dataclasses
libretranslate  the contract that LibreTranslate's clients know
api             /v1, streams included
describing      /v1/info and its like, health and metrics routes
openapi         /spec
detection       which of the served languages a text is in
keys            API keys, hashed; rates
metrics, log    what may be known of the traffic: sizes and times, no text
batcher         the queue: admission, fairness, batches across clients, retries
supervisor      starts the engine process, watches its heartbeat, restarts it, swaps it on SIGHUP
messages        the pipe between the two: length-prefixed JSON
engine, desk    the engine process: `python -m clearhead.serve.engine MODEL …`
"""
