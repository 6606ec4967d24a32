"""English words: what is left of them without their endings, and which say nothing of a place in a project."""

import re

_PLURAL = re.compile(r"(\w{4,}?)(?:ations?|ions?|es)|(\w{3,})s")
_VERB = re.compile(r"(?=\w*[aeiouy]\w*(?:ing|ed))(\w{2,}[^\We])(?:ing|ed)")


def stem(text: str) -> str:
    """A word without the ending that English inflects it by, in lower case."""
    bare = text.lower()
    if bare.endswith("ies") and len(bare) > 5:
        bare = f"{bare[:-3]}y"
    found = None if bare.endswith(("ss", "us")) else _PLURAL.fullmatch(bare)
    if found:
        return found[1] or found[2]
    if found := _VERB.fullmatch(bare):
        return _root(found[1])
    return bare[:-1] if bare[-1:] in "ey" and len(bare) > 4 else bare


def _root(text: str) -> str:
    """What a word is without -ing or -ed: `cancell` is cancel, `mov` is move."""
    if len(text) == 3:
        return f"{text}e" if re.fullmatch("[^aeiou][aeiou][^aeiouwxy]", text) else text
    return text[:-1] if text[-1] == text[-2] and text[-1] not in "aeiousfz" else text


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(stem, words.split()))


STOP_STEMS = _stems("""
    able about above actual actually after again all along already also always and another
    any anything appear are around ask away back base because been before behind being below
    best between both brief briefly but can cannot check clear codebase come complete concrete
    contain correct could current currently decide declare define describe detail determine did
    different do doc documentation does doing don done down during each either else enough
    entire even every everything exact exactly example exist explain far few find first follow
    for from full get give goes going good got had handle happen has have help her here his how
    identify implement implementation include information inside instead interest into
    investigate involved its itself just keep kind know known later learn let like locate long
    look lot made main make many may mean mention might more most much must need never next not note
    nothing now off often once one only other our out over overall overview own particular piece
    please possible provide purpose put quick quickly quote rather readme really related
    relevant repo repository respond responsible right said same say see seem several shall she
    should show similar simply since single snippet some something specific still such sure take
    tell than that the their them then there these they thing this thorough thoroughly those
    through together too toward trace try two under understand until upon usually various very
    via want was well were what whatever when where whether which while who whole whose why will
    with within without would written yes yet you your
""")
"""Of English words that say nothing of a place in a project, those of asking for one among them."""

WEAK_STEMS = _stems("""
    add call change class code command default definition directory document end file filename
    folder function level line list location log make method module name new number option order part
    path place point project question read report result return run search section set sort
    source start state step structure summary test time type use user value version way word
    work write
""")
"""Of words that are in every second task and every second file: looked for when there are few others."""
