"""Text to text, whatever the text is: as many lines come out as go in, and nothing is cut, lost or made up unsaid.

    translator   Translator, load: one text or many
    plan         which parts of a text the model is asked for, and how they become one again
    guards       what a text is made of, and whether a translation can be right
    splitting    a text in parts and back again
    glossary     source phrase -> required target phrase
    translation  Translation: the result
    generating   texts that go on, by models without a source
    details      a result as JSON, with the probability of each token and an alignment
    reading      files of any kind -> lines, in constant memory
    writing      an output that appears complete or not at all, and the journal by which a killed run goes on
    files        translate_file, which puts these together
    shards       --shard i/n and merge
    tasks        what a model was trained for
    generating   a beginning -> text that goes on
    transcribing files of numbers, such as recordings -> text

None of this loads torch; the native engine does, when it is used.
"""

from .glossary import Glossary, read_glossary
from .translation import Translation
from .translator import Translator, load

__all__ = ["Glossary", "Translation", "Translator", "load", "read_glossary"]
