"""Is anything lost or changed in silence? Texts, numbers, addresses and terms, judged from outside (FAITHFUL.md).

    run        the command: python -m benchmarks faithful
    page       FAITHFUL.json -> FAITHFUL.md
    worker     the code that is judged, in a process of its own: this tree's, or another one's
    system     the other end of the worker's pipe
    corpora    the models' corpora, their test sentences, and models where none were given
    measures   BLEU; shares
    left_out   which sentences of a text its translation lacks
    values     which numbers a text has, by babel and tables
    slots      numbers drawn into real sentences
    lexicon    nouns, and which words of the target translate them, by the corpus alone
    segments, paragraphs, numbers, addresses, terms, confidence, plain, alignment
               the parts: each a function measure(asked) -> Found

Nothing here asks the package's own guards what is right: they are what is judged.
"""
