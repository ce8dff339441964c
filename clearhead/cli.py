"""The command line: one function per subcommand, which parses, calls and prints."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from clearhead.errors import INTERRUPTED, USAGE, UserError, exit_code_of
from clearhead.program import to_type

app = typer.Typer(
    name="clearhead",
    help="The encoder-decoder Transformer: train your own, translate, look inside.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Out = Annotated[Path, typer.Option("--out", help="The run folder; running again on the same one goes on with it.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="a.b=c", help="Any option; may be given often.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else.")]
TwoFiles = tuple[str, str]
# Options that take two files, or a single .tsv or .jsonl.
PAIR_OPTIONS = ("--train", "--valid", "--against")
# What Typer raises for wrong arguments: click's ClickException, or in newer versions that of its own copy of click.
PARSING_ERROR = cast(type[Exception], typer.BadParameter.__mro__[2])


def main() -> None:
    """The `clearhead` command."""
    sys.exit(exit_code_of(lambda: run(sys.argv[1:])))


def run(arguments: list[str]) -> int:
    """One command; its exit code."""
    try:
        result = app(_with_second_file(arguments), prog_name="clearhead", standalone_mode=False)
    except PARSING_ERROR as error:
        raise _usage_error(error) from error
    except typer.Abort as error:  # how older ones of Typer pass Ctrl-C on; newer ones return its exit code
        raise KeyboardInterrupt from error
    if result == INTERRUPTED:
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _usage_error(error: Any) -> UserError:
    command = error.ctx.command_path if error.ctx is not None else "clearhead"
    message = error.format_message().rstrip(".")
    return UserError("USAGE", f"{message} (see '{command} --help')", USAGE)


def _with_second_file(arguments: list[str]) -> list[str]:
    """Where an option for two files has only one, an empty second: else the parser takes the next option for it."""
    result = []
    for place, argument in enumerate(arguments):
        result.append(argument)
        follows_option = place > 0 and arguments[place - 1] in PAIR_OPTIONS and not argument.startswith("-")
        follower = arguments[place + 1] if place + 1 < len(arguments) else "-"
        if follows_option and follower.startswith("-"):
            result.append("")
    return result


def _paths(files: TwoFiles | None) -> list[Path]:
    return [Path(file) for file in files or () if file]


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Versions and CPU, for bug reports.")] = False,
) -> None:
    """The encoder-decoder Transformer: train your own, translate, look inside."""
    if version:
        from clearhead.versions import versions

        for name, value in versions().items():
            typer.echo(f"{name} {value}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)


@app.command(epilog="Example: clearhead demo --out my-first-run")
def demo(out: Out = Path("demo-run")) -> int:
    """Train on the built-in corpus of dates, English to Chinese, and show what the model does with new ones."""
    from clearhead.demo import run_demo

    return run_demo(out)


@app.command(
    epilog="Examples: clearhead train --train train.en train.de --out my-run   |   "
    "clearhead train recipe.toml --train pairs.tsv --minutes 15 --out my-run --set model.heads=8   |   "
    "clearhead train speech-digits --train recordings.tsv --out my-ear"
)
def train(
    recipe: Annotated[str | None, typer.Argument(help="A TOML file, or the name of a shipped recipe.")] = None,
    out: Out = Path("run"),
    train_files: Annotated[
        TwoFiles | None,
        typer.Option(
            "--train",
            metavar="SRC TGT",
            help="Two files, or one .tsv or .jsonl; .gz and .zst too. Of speech a manifest.",
        ),
    ] = None,
    valid_files: Annotated[
        TwoFiles | None,
        typer.Option("--valid", metavar="SRC TGT", help="For validation; without them 1 % is held out."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="tiny, small, base, big, lecture or rnn; else what fits the corpus.")
    ] = None,
    processes: Annotated[int | None, typer.Option(help="Processes on this machine; else measured.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Fit steps and schedule to this time.")] = None,
    init_from: Annotated[Path | None, typer.Option(help="Start from this model; its tokenizer is kept.")] = None,
    sets: Sets = None,
) -> int:
    """Train a model on your own pairs. Running the same command again goes on where it stopped, exactly."""
    from clearhead.config import Flags, make_request
    from clearhead.training.run import train as train_run

    command = shlex.join(["clearhead", *sys.argv[1:]])
    flags = Flags(_paths(train_files), _paths(valid_files), preset, processes, minutes, init_from, command)
    return train_run(make_request(recipe, flags, sets or []), out)


@app.command(epilog="Example: clearhead recipe dates > mine.toml")
def recipe(name: Annotated[str | None, typer.Argument(help="Which one to print; none: list them.")] = None) -> None:
    """List the shipped recipes, or print one."""
    from clearhead.config import recipe_text, shipped_recipes

    if name is not None:
        typer.echo(recipe_text(name), nl=False)
        return
    for shipped in shipped_recipes():
        first = recipe_text(shipped).split("\n", 1)[0].removeprefix("# ")
        typer.echo(f"{shipped:<16} {first}")


@app.command(
    epilog="Examples: clearhead translate my-run test.en -o test.de   |   clearhead translate my-run < test.en   |   "
    "clearhead translate my-run big.en -o big.de --resume   |   clearhead translate my-run --text 'A dog runs.'"
)
def translate(
    model: Annotated[Path, typer.Argument(help="A run folder or a model folder.")],
    source: Annotated[
        Path | None, typer.Argument(metavar="INPUT", help="A text file, .gz and .zst too; - or none: standard input.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Translate this, and print it; in place of INPUT.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="A file, .gz too; - for standard output.")] = Path("-"),
    beam: Annotated[int | None, typer.Option(min=1, help="1 is greedy search; else as in the recipe.")] = None,
    n_best: Annotated[int | None, typer.Option(min=1, help="So many translations of each line; with --json.")] = None,
    engine: Annotated[str, typer.Option(help="auto (the fastest that can do it), native or ct2.")] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="An object per line: scores, tokens, alignment, warnings.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run was stopped or killed; one that is finished stays.")
    ] = False,
    shard: Annotated[
        str | None, typer.Option(metavar="i/n", help="Only the i-th of n shares of the lines, from 1; see merge.")
    ] = None,
    glossary: Annotated[
        Path | None, typer.Option(help="Lines of source phrase, tab, target phrase that is required.")
    ] = None,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="A line's translation depends on that line alone; slower. Without, rounding among other lines may "
            "decide between two ways to say it that are as likely.",
        ),
    ] = False,
    prefix: Annotated[str, typer.Option(help="How every translation has to begin.")] = "",
    temperature: Annotated[float | None, typer.Option(help="Sample, from a flatter distribution above 1.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample from the k likeliest words.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample from the words that have this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
) -> None:
    """Translate a text line by line: as many lines come out as went in.

    A file is written every second or two under the name OUTPUT.partial, and gets its own when it is complete. Whatever
    stops the work, Ctrl-C, SIGTERM or kill -9, the same command with --resume goes on after the last line there.
    """
    from clearhead.translator import load, read_glossary
    from clearhead.translator.files import (
        Task,
        require_files,
        require_text_alone,
        search_options,
        translate_file,
        translate_text,
    )
    from clearhead.translator.shards import parse_shard
    from clearhead.translator.tasks import require_task

    if text is not None:
        others = {"INPUT": source, "--output": str(output) != "-", "--resume": resume, "--shard": shard}
        require_text_alone([name for name, given in others.items() if given])
    source = source or Path("-")
    require_files(model, source, output)
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    terms = read_glossary(glossary) if glossary else None
    share = parse_shard(shard) if shard else None
    translator = load(model, engine, deterministic)
    require_task(translator.task, "translate")
    options = search_options(translator.decoding, {"beam": beam, "n_best": n_best, **sampling}, as_json)
    again = to_type(*sys.argv[1:], *([] if resume else ["--resume"]))
    task = Task(options, terms, prefix, as_json, resume, share, again)
    if text is not None:
        translate_text(translator, text, task)
    else:
        translate_file(translator, source, output, task)


@app.command(
    epilog="Examples: clearhead generate my-run 'def main('   |   "
    "clearhead generate my-run 'Once' --beam 5   |   clearhead generate my-run - --samples 3 --json < begin.txt"
)
def generate(
    model: Annotated[Path, typer.Argument(help="A run folder or a model folder that was trained to continue text.")],
    prompt: Annotated[str, typer.Argument(help="How the text begins; - for standard input.")] = "",
    length: Annotated[int, typer.Option(min=1, help="Tokens to write at most.")] = 120,
    samples: Annotated[int, typer.Option(min=1, help="So many texts.")] = 1,
    beam: Annotated[int | None, typer.Option(min=1, help="Search the likeliest text instead of sampling.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="0.8 unless given; higher is wilder, 0 takes the likeliest word.")
    ] = None,
    top_p: Annotated[float, typer.Option(help="Sample from the words that have this probability.")] = 0.95,
    top_k: Annotated[int, typer.Option(help="Sample from the k likeliest words; 0: from all.")] = 0,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="An object per text: the text and its score.")] = False,
) -> None:
    """Continue a text, by a model that was trained with task=generate on plain text.

    On a terminal the words appear as they are chosen, the text of a beam at its end; in a pipe the whole text.
    """
    from clearhead.translator.generating import Wishes, load_generator, print_written
    from clearhead.translator.generating import generate as continue_text

    translator = load_generator(model)
    text = sys.stdin.read() if prompt == "-" else prompt
    wishes = Wishes(length, samples, beam, temperature, top_p, top_k, seed)
    if samples == 1 and not as_json:
        print_written(translator, text, wishes)
        return
    for found in continue_text(translator, text, wishes)[0]:
        typer.echo(_dump({"text": found.text, "score": found.score}) if as_json else found.text)


@app.command(
    epilog="Examples: clearhead transcribe my-run hello.wav   |   clearhead transcribe my-run *.flac --json   |   "
    "clearhead transcribe my-reader line.png"
)
def transcribe(
    model: Annotated[Path, typer.Argument(help="A run folder or a model folder of task=speech, image or series.")],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE ...", help="Recordings, pictures, or .npy and CSV files.")
    ],
    beam: Annotated[int | None, typer.Option(min=1, help="1 is greedy search; else as in the recipe.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="An object per file: file, text and score.")] = False,
) -> int:
    """Write down what is said in recordings, what stands in pictures, or what numbers mean: one line per file.

    Of several files each line begins with the file's name and a tab. A file that cannot be read is named on stderr, the
    others are written down, and the exit code is that of the first such file.
    """
    from clearhead.translator.transcribing import load_transcriber, print_transcripts

    translator = load_transcriber(model)
    return print_transcripts(translator, files, translator.options(beam), as_json)


@app.command(epilog="Example: clearhead merge test.de part-1.de part-2.de part-3.de")
def merge(
    output: Annotated[Path, typer.Argument(help="The file to write; .gz too.")],
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD ...", help="What translate --shard wrote; all of it.")],
) -> None:
    """Put the shares of a translation together, after checking that none is missing, damaged or of another."""
    from clearhead.translator.shards import merge as merge_shards

    lines = merge_shards(output, shards)
    typer.echo(f"clearhead: {lines:,} lines in {output}", err=True)


@app.command(
    epilog="Examples: clearhead check train.en train.de --against test.en test.de   |   "
    "clearhead check recordings.tsv --set data.task=speech"
)
def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="SRC TGT", help="Two files, or one .tsv or .jsonl. Of speech a manifest.")
    ],
    against: Annotated[
        TwoFiles | None, typer.Option("--against", metavar="SRC TGT", help="A test set that must not be in it.")
    ] = None,
    as_json: AsJson = False,
    sets: Sets = None,
) -> None:
    """The data doctor: what is in a parallel corpus, what is odd, and what training would leave out.

    Of task=speech, image or series it reads every file of the manifest: which are missing, cut off or silent. Where
    nothing can be trained on, the exit code is 65.
    """
    import shutil

    from clearhead.config import data_options
    from clearhead.data.doctor import Diagnosis, examine
    from clearhead.data.manifest_doctor import ManifestDiagnosis, examine_manifest
    from clearhead.progress import progress

    options = data_options(sets or [])
    with progress("checking") as bar:
        diagnosis: Diagnosis | ManifestDiagnosis
        if options.is_continuous:
            diagnosis = examine_manifest(
                files, options, _paths(against) or None, lambda done: bar.update(done, None, "files")
            )
        else:
            diagnosis = examine(files, options, _paths(against) or None, lambda done: bar.update(done, None, "pairs"))
    if as_json:
        typer.echo(_dump(diagnosis.to_dict()))
    else:
        for line in diagnosis.lines(shutil.get_terminal_size().columns):
            typer.echo(line)
    diagnosis.require_some()


@app.command(
    epilog="Examples: clearhead evaluate my-run test.en test.de   |   "
    "clearhead evaluate my-run test.en test.de --baseline other-run --json   |   clearhead evaluate my-ear test.tsv"
)
def evaluate(
    model: Annotated[Path, typer.Argument(help="A run folder or a model folder.")],
    files: Annotated[list[Path], typer.Argument(metavar="SRC REF", help="Two files, or one .tsv, .jsonl or manifest.")],
    baseline: Annotated[
        list[Path] | None,
        typer.Option(metavar="MODEL", help="Another model to compare with, with p-values; may be given often."),
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="1 is greedy search; else as in the recipe.")] = None,
    engine: Annotated[str, typer.Option(help="auto, native or ct2.")] = "auto",
    tokenize: Annotated[
        str | None,
        typer.Option(help="BLEU's tokenizer: 13a, intl, zh, char, or none for text in tokens; else by language."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Translate a test set and compare with its reference: BLEU, chrF, TER, error rate, exact match, and speed.

    The error rate counts words, or characters of Chinese and its like: of spoken text it is the WER or CER, of phonemes
    the PER. What is no exact match is the share of wrong sentences, or of wrong words if a line is a word. A model that
    was trained to continue text is evaluated on text files: perplexity, and bits per character; one of task=speech,
    image or series on a manifest of files and their text: word and character error rate.
    """
    from clearhead.evaluation.report import evaluate as evaluate_models
    from clearhead.evaluation.report import require_alone, task_of

    task = task_of(model)
    if task != "translate":
        require_alone(task, baseline, tokenize)
    if task == "generate":
        from clearhead.evaluation.perplexity import surprise

        evaluation: Any = surprise(model, files)
    elif task != "translate":
        from clearhead.evaluation.transcripts import evaluate_transcripts

        evaluation = evaluate_transcripts(model, files, beam)
    else:
        evaluation = evaluate_models(model, files, baseline or [], beam, engine, tokenize)
    if as_json:
        typer.echo(_dump(evaluation.to_dict()))
        return
    for line in evaluation.lines():
        typer.echo(line)


@app.command(epilog="Example: clearhead score my-run test.en test.de | sort -n -k 2 | head")
def score(
    model: Annotated[Path, typer.Argument(help="A run folder or a model folder.")],
    files: Annotated[list[Path], typer.Argument(metavar="SRC TGT", help="Two files, or one .tsv or .jsonl.")],
    engine: Annotated[str, typer.Option(help="native gives the exact numbers; auto or ct2 may be faster.")] = "native",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with every token.")] = False,
) -> None:
    """How likely the model finds given translations: log-probability, its mean per token, and the number of tokens.

    One line for each line of the files, separated by tabs. The end of the sentence is a token too. The line of a pair
    of which one side is empty or no UTF-8 is empty.
    """
    from clearhead.evaluation.log_probability import score_files

    for pair in score_files(model, files, engine):
        typer.echo(_dump(pair.to_dict()) if as_json else str(pair))


@app.command(
    epilog="Examples: clearhead inspect my-run 'A dog runs.'   |   "
    "clearhead inspect my-run 'A dog runs.' --html dog.html   |   "
    "clearhead inspect my-run 'A dog runs.' --svg dog.svg --head cross:2:1   |   "
    "clearhead inspect my-speech-run hello.wav --html hello.html   |   "
    "clearhead inspect my-reader line.png --html line.html"
)
def inspect(
    model: Annotated[Path, typer.Argument(help="A run folder or a model folder.")],
    text: Annotated[str, typer.Argument(help="The sentence to look at; - for standard input. Or a file's path.")],
    target: Annotated[str | None, typer.Option(help="Look at this translation instead of the model's own.")] = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="The sentence's way through the whole network, stop by stop.")
    ] = False,
    top: Annotated[int | None, typer.Option(min=1, help="So many runners-up of each word that was written.")] = None,
    lattice: Annotated[bool, typer.Option("--lattice", help="What the beam held at each step.")] = False,
    html: Annotated[Path | None, typer.Option(help="The report: one file, every view, no network.")] = None,
    as_json: Annotated[Path | None, typer.Option("--json", help="All numbers; - for standard output.")] = None,
    svg: Annotated[Path | None, typer.Option(help="A figure; .png too.")] = None,
    head: Annotated[
        str | None, typer.Option(metavar="KIND:LAYER:HEAD", help="Which head to show, such as cross:2:1; see --svg.")
    ] = None,
    compare: Annotated[Path | None, typer.Option(metavar="MODEL", help="A second model, for the report.")] = None,
    health: Annotated[
        Path | None,
        typer.Option(help="Signs of trouble in each line of standard input: .html, .csv or .json; TEXT is -."),
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="1 is greedy search; else as in the recipe.")] = None,
    plain: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters alone.")] = False,
) -> None:
    """Look inside a translation: where every head looked, what else could have been written, and what mattered.

    Of a model of task=speech, image or series TEXT is a file; the source axis is then time, place, or steps. Layers and
    heads are counted from 1. With --svg, --head cross:2:1 draws one head, cross:2 all heads of a layer,
    and cross all heads of all layers.
    """
    from clearhead.translator.looking import Wanted, look, look_at_lines

    if health is not None:
        look_at_lines(model, text, health, beam)
        return
    files = [path for path in (html, as_json, svg) if path is not None]
    look(model, text, Wanted(target, beam, top, steps, lattice, files, head, compare, plain))


@app.command(
    epilog="Examples: clearhead serve my-run   |   clearhead serve en-de de-en --port 8080   |   "
    "clearhead serve my-run --host 0.0.0.0 --api-keys keys.txt --public-host translate.example.org"
)
def serve(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL ...", help="Run folders or model folders.")],
    host: Annotated[str, typer.Option(help="The address to listen on; any but this machine's own needs keys.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 5000,
    api_keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A key and a label a line; readable by nobody else.")
    ] = None,
    public_host: Annotated[
        list[str] | None, typer.Option(help="Another name that clients call the server by; may be given often.")
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Let other machines in without a key.")
    ] = False,
) -> int:
    """Translate and continue texts over HTTP: LibreTranslate's interface, and one with scores, streams and traces.

    SIGTERM answers what was begun and ends with 0; SIGHUP loads the models anew beside the old ones and swaps them.
    The log on stderr has no text in it. GET /spec describes everything, and / is a page for people.
    """
    from clearhead.serve.options import ServeOptions, require_installed

    require_installed()
    from clearhead.serve.server import serve as run_server

    return run_server(ServeOptions(models, host, port, api_keys, public_host or [], allow_anonymous))


@app.command(
    epilog="Examples: clearhead export my-run my-model-hf --to hf   |   "
    "clearhead export my-run my-model-ct2 --to ct2 --quantization float32"
)
def export(
    model: Annotated[Path, typer.Argument(help="A run folder or a model folder.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; an older export there is replaced.")],
    to: Annotated[str, typer.Option(metavar="ct2|hf", help="CTranslate2, or Hugging Face's Marian.")],
    quantization: Annotated[str, typer.Option(help="Of ct2: int8, int8_float32, int16 or float32.")] = "int8",
) -> None:
    """Write a model as others have it. It is checked: both must translate a sample alike, else nothing is written."""
    from clearhead.exchange import export_model

    for line in export_model(model, out, to, quantization):
        typer.echo(f"clearhead: {line}", err=True)


@app.command(
    "import", epilog="Example: clearhead import opus-mt-en-de my-model && clearhead translate my-model text.en"
)
def import_(
    folder: Annotated[Path, typer.Argument(metavar="HF_DIR", help="A Hugging Face Marian model on this disk.")],
    out: Annotated[Path, typer.Argument(help="The model folder to write; an older import there is replaced.")],
) -> None:
    """Make a model folder of a Marian model, such as those of OPUS-MT. Both must translate a sample alike."""
    from clearhead.exchange import import_model

    for line in import_model(folder, out):
        typer.echo(f"clearhead: {line}", err=True)


@app.command(epilog="Examples: clearhead lab   |   clearhead lab run scale   |   clearhead lab all --out lab")
def lab(
    action: Annotated[str, typer.Argument(metavar="[list | run | all]", help="What to do; else list.")] = "list",
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME ...", help="Which to run.")] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder for tables, plots and pages.")] = Path("lab"),
) -> None:
    """The claims of the lecture notes, each measured by a small experiment: list them, run some, or run all."""
    from clearhead.lab.command import run_lab

    run_lab(action, names or [], out, shlex.join(["clearhead", *sys.argv[1:]]))


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
