"""A translation service that can be left alone: a front process without torch, and an engine process that it restarts.

Models that continue text are served beside those that translate.

options         where it listens, and the limits that /v1/info shows
server          binding, signals, draining: `clearhead serve`
protocol        HTTP/1.1 on uvicorn with deadlines for slow senders and slow readers
gate            what every request passes (name, origin, key) and every answer gets (headers, log, metrics)
app             the routes
front_page      the page at /: the report's files and those of page/, with the texts of both
libretranslate  the contract that LibreTranslate's clients know
api, requests   /v1, streams included, and what it takes, as dataclasses
describing      what the server tells of itself: health, models, limits, metrics
openapi         /spec
bodies          a request's bytes -> checked values
refusal         why a request is not answered
service         what all routes share: who may ask, which model, waiting for an answer
detection       which of the served languages a text is in
keys            API keys, hashed; rates
metrics, log    what may be known of the traffic: sizes and times, no text
batcher         the queue: admission, turns, batches across clients, second tries
supervisor      starts the engine process, watches its heartbeat, restarts it, swaps it on SIGHUP
messages        the pipe between the two: length-prefixed JSON
engine, desk    the engine process: `python -m clearhead.serve.engine MODEL …`
"""
