"""A translation service as people write it, FastAPI around CTranslate2: FORM SOURCE_MODEL TARGET_MODEL BEAM PORT.

Each request is translated for itself, in the thread pool that FastAPI gives to plain functions.
"""

import sys

import ctranslate2  # type: ignore[import-untyped]
import uvicorn
from fastapi import FastAPI  # type: ignore[import-not-found]
from pydantic import BaseModel
from sentencepiece import SentencePieceProcessor

form, source_model, target_model, beam, port = sys.argv[1:]
translator = ctranslate2.Translator(form, device="cpu")
source, target = SentencePieceProcessor(source_model), SentencePieceProcessor(target_model)
app = FastAPI()


class Question(BaseModel):
    q: str
    source: str
    target: str


@app.get("/readyz")
def readyz() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/translate")
def translate(question: Question) -> dict[str, str]:
    (result,) = translator.translate_batch([source.encode(question.q, out_type=str)], beam_size=int(beam))
    return {"translatedText": target.decode(result.hypotheses[0])}


if __name__ == "__main__":
    uvicorn.run(app, port=int(port), log_level="warning")
