"""What a run folder and a model folder hold: saved atomically, verified by hash, read without running anything.

    disk          require_space; files that are on the disk when a call returns
    manifest      verify, read_file: what is read is what was written
    files         a folder appears complete or not at all: write_folder, clean
    lock          one trainer per run folder
    weights       tensors <-> safetensors, shared ones once; load_weights, average
    optimizer     Adam's state and the random generator as named tensors
    run           RUN/checkpoints/step-…: save_checkpoint, newest_valid, thin, clean_run
    model_folder  which folder MODEL means, and its config.json: a closed schema
    model         save_model, load_model

All but weights, optimizer, run and model do without torch. No file is a pickle, and no code, path, URL or
environment variable is taken from any of them.
"""
