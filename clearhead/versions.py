"""What to name in a bug report: versions, CPU features and threads."""

import os
import platform
import sys

import clearhead


def versions() -> dict[str, str]:
    """Loads torch, the largest part of what there is to report."""
    import torch

    return {
        "clearhead": clearhead.__version__,
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "system": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "bfloat16": "in hardware" if has_bfloat16() else "emulated, slow",
        "threads": f"{torch.get_num_threads()} of {os.cpu_count()}",
    }


def has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices by itself."""
    import torch

    has = torch.cpu.get_capabilities()
    return bool(has.get("avx512_bf16") or has.get("amx_bf16"))
