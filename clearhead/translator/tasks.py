"""What a model was trained for, and that it is asked for nothing else."""

from clearhead.errors import USAGE, UserError

DOES = {  # task -> what such a model does, and the command for it
    "translate": ("translate text", "translate"),
    "generate": ("continue text", "generate"),
    "speech": ("write down recordings", "transcribe"),
    "image": ("read pictures", "transcribe"),
    "series": ("read series of numbers", "transcribe"),
}


def require_task(task: str, *wanted: str) -> None:
    """That the model's task is one of these; else the message has the command that it is for."""
    if task in wanted:
        return
    does, command = DOES[task]
    others = " or ".join(DOES[one][0] for one in wanted)
    message = f"this model was trained to {does}, not to {others}; use clearhead {command}, or a model for it"
    raise UserError("TASK", message, USAGE)
