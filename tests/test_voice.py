"""Words that docstrings, comments, messages and pages of documentation no longer use."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
CODE = ("dpaudit", "generators", "attacks")
AT_THE_ROOT = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
GENERATED = ROOT / "docs" / "reference"  # from docstrings and from what users see at run time
GONE = (
    "as good as blind",
    "as strict as leaves",
    "besides?",
    "betrays?",
    "came to",
    "computed of",
    "convicted",
    "drawn to silence",
    "foretold",
    r"gave (\w+ )*away",
    "given away",
    "gives? away",
    "gravest",
    "have to be more of",
    "(is|was|are|were) held (to|against)",
    r"hold(s|ing)? of (it|one record|that record) alone",
    "in earnest",
    "in vain",
    "keeps? (its|their) promise",
    "lend one another strength",
    "looks? whether",
    "mended",
    r"mist(ook|aken)",
    "nobody",
    "peculiarit(y|ies)",
    "nothing is shown to remove",
    r"rather had \w+ \w+ than not",
    "said to",
    "says? (nothing|no more) of",
    "silences?",
    "silent",
    "speaks? (for|against)",
    "stays? open",
    "surest",
    r"takes? for granted",
    "tells? the worlds apart",
    "(are|is|be|was|were) told apart",
    "tells? them apart",
    "the very (trials|game|same|one)",
    "while looking",
    "whoever",
)
"""Regular expressions of whole words; a space stands for any white space."""


class Texts(NamedTuple):
    """The texts of a module.

    Attributes:
        prose: Docstrings (those of attributes, too) and blocks of comments.
        sentences: What users may see: all other texts, in parts around values.
    """

    prose: list[str]
    sentences: list[str]


@cache
def texts_of(source: str) -> Texts:
    docstrings: set[ast.AST] = set()
    texts = Texts([], [])
    for node in ast.walk(ast.parse(source)):  # a docstring's statement before the docstring
        match node:
            case ast.Expr(ast.Constant(str(text)) as docstring):
                docstrings.add(docstring)
                texts.prose.append(text)
            case ast.Constant(str(text)) if node not in docstrings:
                texts.sentences.append(text)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    texts.prose.append("\n".join(comment.string.lstrip("#: ") for comment in comments))
    return texts


def pattern_of(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b".replace(" ", r"\s+"), re.IGNORECASE)


ANY_GONE = pattern_of("|".join(GONE))


def gone_from(text: str) -> list[str]:
    return [found.group() for found in ANY_GONE.finditer(text)]


def outside_blocks(page: str) -> str:
    """A page without its blocks of code, which show what users see at run time."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("folder", CODE)
def test_docstrings_and_comments_use_the_words_of_the_field(folder: str) -> None:
    found = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in (ROOT / folder).rglob("*.py")
        for text in texts_of(path.read_text(encoding="utf-8")).prose
        for word in gone_from(text)
    }
    assert found == set()


@pytest.mark.parametrize("folder", CODE)
def test_messages_use_the_words_of_the_field(folder: str) -> None:
    found = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in (ROOT / folder).rglob("*.py")
        for text in texts_of(path.read_text(encoding="utf-8")).sentences
        for word in gone_from(text)
    }
    assert found == set()


def test_pages_use_the_words_of_the_field() -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if GENERATED not in path.parents]
    found = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in [*(ROOT / name for name in AT_THE_ROOT), *pages]
        for word in gone_from(outside_blocks(path.read_text(encoding="utf-8")))
    }
    assert found == set()


def test_a_percent_sign_stands_after_a_space() -> None:
    """As `formatting.percent` writes it; not as Python's own format does."""
    found = {
        f"{path.relative_to(ROOT)}:{number}"
        for folder in (*CODE, "reports", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r":[.\d]*%\}", line)
    }
    assert found == set()


@pytest.mark.parametrize(
    "sentence",
    [
        "an attack that is as good as blind",
        "as strict as leaves that a proof",
        "its columns besides the label",
        "the files beside it",
        "what each attack came to",
        "what there would have to be more of",
        "what the generator is held to",
        "what was tried in vain",
        "their peculiarities",
        "a generator is said to leak",
        "the claim says nothing of public rows",
        "what stays open",
        "low bits betray a count",
        "power is computed of",
        "honest generators convicted",
        "the rest is drawn to silence",
        "a bound is held against its limit",
        "the time that was foretold",
        "the gravest verdict",
        "in earnest: a public schema",
        "a generator that keeps its promise",
        "probes look whether the output follows",
        "it gave no coin away",
        "a record given away",
        "the output gives it away; delta gives away more",
        "facts hold of it alone",
        "records that leak alike lend one another strength",
        "the generator is mended",
        "it mistook 0 of 127",
        "an effect mistaken for another",
        "a bound flags nobody",
        "nothing is shown to remove it",
        "a model rather had a record than not",
        "silence pays",
        "the attack is silent",
        "a guess that speaks for the claim",
        "the surest first",
        "an assumption that it takes for granted",
        "they tell the worlds apart",
        "the worlds are told apart",
        "a text that tells them apart",
        "the very trials of the smaller one",
        "to add models while looking",
        "whoever sees the data",
    ],
)
def test_each_of_these_words_is_found(sentence: str) -> None:
    module = f'"""A module."""\n\n# {sentence}\nwords = "not prose: whoever"\n'
    (docstring, comments) = texts_of(module).prose
    assert gone_from(comments)
    assert gone_from(docstring) == []
    (docstring, _) = texts_of(f'"""{sentence.replace(" ", chr(10))}"""\n').prose
    assert gone_from(docstring)
    (attribute, _) = texts_of(f'x = 1\n"""{sentence}"""\n').prose
    assert gone_from(attribute)
    assert any(map(gone_from, texts_of(f'x = f"{sentence}: {{1}}"\n').sentences))


def test_every_word_of_the_list_has_its_sentence() -> None:
    marks = test_each_of_these_words_is_found.pytestmark
    sentences = marks[0].args[1]
    for words in GONE:
        assert any(pattern_of(words).search(sentence) for sentence in sentences), words
