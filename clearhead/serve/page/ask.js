/* Questions to the server: with the key, with an end, and with what went wrong as a word that has a text. */
(function (CH) {
"use strict";

const STORED = "clearhead-key"; // in this tab only, and gone with it
const PASSING = ["lost", "too_many_requests", "queue_full", "starting", "draining", "engine_restarted"];
const KEYS = ["key_needed", "invalid_key"];
const FIRST_PAUSE = 500, LONGEST_PAUSE = 4000; // milliseconds between two looks whether the server is back

CH.key = (given) => {
  if (given !== undefined) sessionStorage.setItem(STORED, given);
  return sessionStorage.getItem(STORED) || "";
};

CH.pause = (milliseconds, signal) => new Promise((resolve, reject) => {
  const end = () => { clearTimeout(timer); reject(signal.reason); }, timer = setTimeout(() => {
    signal?.removeEventListener("abort", end);
    resolve();
  }, milliseconds);
  if (signal?.aborted) end();
  signal?.addEventListener("abort", end, { once: true });
});

// Why there is no answer: a code of the server's, or "lost"; `seconds` says when to try again
class Refusal extends Error {
  constructor(code, said = "", seconds = 1) {
    super(said || code);
    Object.assign(this, { code, said, seconds, passes: PASSING.includes(code), wantsKey: KEYS.includes(code) });
  }

  get words() {
    return CH.t(CH.hasText("error." + this.code) ? "error." + this.code : "error.other",
      { said: this.said, seconds: this.seconds });
  }

  // Until it may be tried again
  async over(signal) {
    return this.code === "lost" ? back(signal) : CH.pause(1000 * this.seconds, signal);
  }
}
CH.Refusal = Refusal;

// Until the server answers again
async function back(signal) {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(1.5 * pause, LONGEST_PAUSE)) {
    await CH.pause(pause, signal);
    try {
      if ((await fetch("livez", { signal })).ok) return;
    } catch (problem) {
      if (!(problem instanceof TypeError)) throw problem; // as fetch says that nobody is there
    }
  }
}

async function refusal(answer) {
  const seconds = Number(answer.headers.get("retry-after")) || 1;
  try {
    const { code, error } = await answer.json();
    return new Refusal(code || "other", error, seconds);
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem; // not ours: something between us and the server
    return new Refusal("other", String(answer.status), seconds);
  }
}

// fetch and all that reads from it say with a TypeError that the line is dead
async function connected(reading) {
  try {
    return await reading();
  } catch (problem) {
    throw problem instanceof TypeError ? new Refusal("lost") : problem;
  }
}

const send = (path, body, signal) => connected(async () => {
  const key = CH.key(), headers = { ...(body && { "content-type": "application/json" }),
    ...(key && { authorization: "Bearer " + key }) };
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, signal, cache: "no-store",
    body: body && JSON.stringify(body) });
  if (!answer.ok) throw await refusal(answer);
  return answer;
});

// The JSON that the server says to a body, or without one
CH.ask = async function (path, body, signal) {
  const answer = await send(path, body, signal);
  return connected(() => answer.json());
};

/**
 * The translation of one text, or its continuation.
 * @param {(text: string) => void} partial hears the whole text so far
 */
CH.stream = async function (path, body, signal, partial) {
  const answer = await send(path, { ...body, stream: true }, signal);
  return connected(async () => {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", came = await reader.read(); !came.done; came = await reader.read()) {
      const events = (rest + came.value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(event), said = JSON.parse(data);
        if (name === "result") return said;
        if (name === "error") throw new Refusal(said.code, said.error);
        partial(said.text);
      }
    }
    throw new Refusal("lost");
  });
};

// Asks again as long as what is wrong passes by itself, and tells of it
CH.insist = async function (question, tell, signal) {
  for (;;) {
    try {
      return await question();
    } catch (problem) {
      if (!(problem instanceof Refusal && problem.passes)) throw problem;
      tell(problem);
      await problem.over(signal);
    }
  }
};
})(window.CH = window.CH || {});
