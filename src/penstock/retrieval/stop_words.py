"""Words that say little of what is asked: stop words, particles and question words.

They say nothing of what is looked for: a passage that shares only these with a question has nothing
to do with it. The index holds them; they are left out of questions.

They are written without a space to the word they belong to, so the pairs of characters that hold
them differ from one sentence to the next: 냉장고에 of a question is 냉장고를 in its answer. Such
pairs are rare, and would count as telling; the word itself is found by its other pairs. In English
the like are words of their own, which are frequent and so count for little.
"""

from __future__ import annotations

import re

from penstock.retrieval.terms import TIE, normal, run_pattern

_WORDS = {
    "en": (
        "a an the this that these those and or but nor so if then than as because while of in "
        "on at by for from to into onto with without within about between through during before "
        "after until over up out off per via upon i me my mine myself we us our ours you your "
        "yours he him his she her hers it its itself they them their theirs one ones who whom "
        "whose which what why how when where whether am is are was were be been being do does "
        "did done doing have has had having can could shall should would must might ought not "
        "no yes any some each every all both either neither such same other another more most "
        "much many few less least very too also just only even still yet again once ever there "
        "here tell explain please"
    ),
    "de": (
        "der die das den dem des ein eine einen einem einer eines kein keine keinen keiner und "
        "oder aber denn weil dass daß wenn als ob wie in im an am auf aus bei beim bis durch "
        "für gegen mit nach ohne seit über um unter von vom vor zu zum zur zwischen ich mich "
        "mir mein meine meinen meiner du dich dir dein deine er ihn ihm sein seine seinen "
        "seiner sie ihr ihre ihren ihrer es wir uns unser unsere euch euer man sich wer wen wem "
        "wessen was welche welcher welches welchen warum weshalb wieso wo wann wohin woher "
        "wieviel bin bist ist sind seid war waren gewesen werden wird wurde wurden worden habe "
        "haben hat hatte hatten kann können konnte muss müssen soll sollen sollte darf dürfen "
        "nicht auch nur noch schon sehr so dann hier da dort dieser diese dieses diesen jeder "
        "jede jedes alle mehr"
    ),
    "fr": (
        "à le la les un une des du de au aux ce cet cette ces et ou mais donc si que qui quoi "
        "dont où quel quelle quels quelles pourquoi comment quand combien dans en sur sous avec "
        "sans pour par chez vers entre depuis je me moi mon ma mes tu te toi ton ta tes il elle "
        "on nous notre nos vous votre vos ils elles leur leurs se son sa ses lui est sont était "
        "étaient être été suis sommes ont avait avoir fait ne pas plus très aussi y"
    ),
    "es": (
        "el la los las un una unos unas de del al y o u pero si que qué quién quiénes cuál "
        "cuáles cómo como cuándo cuando dónde donde cuánto cuánta cuántos cuántas por para con "
        "sin en sobre entre desde hasta yo me mi mis tú te tu tus él ella ello nos nuestro "
        "nuestra ellos ellas su sus se lo le les es son era eran ser está están estar fue ha "
        "han hay no más muy también ya porque este esta estos estas ese esa eso"
    ),
    "it": (
        "il lo la i gli le un uno una di del dello della dei degli delle a al allo alla ai agli "
        "alle da dal dalla in nel nella nei con su sul sulla per tra fra e ed o ma se che chi "
        "cui quale quali perché come quando dove quanto quanta quanti quante io mi mio mia tu "
        "ti tuo lui lei noi ci voi vi loro si suo sua suoi è sono era erano essere stato ha "
        "hanno avere non più anche questo questa questi queste"
    ),
    "nl": (
        "de het een en of maar want als dat die dit deze in op aan bij met naar om onder over "
        "te tot uit van voor door tegen tussen zonder ik mij me mijn jij je jou jouw hij hem "
        "zijn zij ze haar wij we ons onze jullie hun wie wat welke waarom hoe wanneer waar is "
        "ben bent was waren geweest wordt worden werd heeft hebben had kan kunnen moet moeten "
        "niet geen ook nog al er"
    ),
    "pt": (
        "o a os as um uma de do da dos das em no na nos nas por pelo pela para com sem sobre "
        "entre e ou mas se que quem qual quais como quando onde porque quanto quanta quantos "
        "quantas eu me meu minha tu te teu tua ele ela nós eles elas seu sua seus suas é são "
        "era eram ser está estão foi há não mais muito também este esta isso"
    ),
}
_LISTS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_ENGLISH = _LISTS["en"]
_MEANT_WORDS = (
    "die war man hat bin den pour son ton par sans plus comment con sin como come dove era "
    "van door men com dos os las des sur sous fait ben mine all alle per tu ma pas no"
)
_MEANT = frozenset(_MEANT_WORDS.split())
"""Those of other languages that mean something in English: small words only beside another word of
their language."""
_LOOKED_AT = 1000
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_CLITICS = re.compile(
    r"\b(?:do|does|did|is|are|was|were|has|have|had|ca|wo|could|should|would|must|might|need)"
    r"n['\u2019]t\b|(?<=\w)['\u2019](?:s|re|m|ve|d|ll)\b"
    r"|\b(?:[cdjlmnst]|qu|un|dell|all|nell|sull|dall)['\u2019](?=\w)"
)


def stop_words(text: str) -> frozenset[str]:
    """Which words, as `normal` writes them, are small words in this question. One that is written
    in capitals is a name: IT, US, WHO."""
    written = run_pattern().findall(text)
    held = {normal(run) for run in written}
    found = set(held & _ENGLISH)
    for words in _LISTS.values():
        small = held & words
        found |= small if small - _MEANT - _ENGLISH else small - _MEANT
    if len(written) <= 2 or text != text.upper():  # else all of it is in capitals
        found -= {
            normal(run)
            for run in written
            if len(run) > 1 and run.isupper() and run not in _OPERATORS
        }
    return frozenset(found | _parts(held))


def language(text: str) -> str:
    """The language of a text by its stop words: "en", "de", ...; "" where they do not tell."""
    runs = [normal(run) for run in run_pattern().findall(text[:_LOOKED_AT])]
    counts = {name: sum(run in words for run in runs) for name, words in _LISTS.items()}
    first, second = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    return first if counts[first] > counts[second] else ""


def _parts(held: set[str]) -> set[str]:
    """Small words that are tied to others, as in state-of-the-art."""
    return {part for run in held for part in TIE.split(run) if part != run} & _ENGLISH


def without_stop_words(text: str, small: frozenset[str]) -> str:
    """`text`, as `normal` writes it, with a space for each of these words."""
    return run_pattern().sub(
        lambda run: " " if run[0] in small else run[0], _CLITICS.sub(" ", text)
    )


_HIRAGANA = "ぁ-ゖ"
_KATAKANA = "ァ-ヺー"
_HANGUL = "가-힣"
_JAPANESE = (
    "は が を に で と も の へ や な から まで より では には とは でも にも とも ので のに "
    "なら だけ ほど など する した して しない すると するとき している していた される "
    "された されて されている れる られ ている ていた った って ない なく である です ます "
    "こと もの ため とき よう"
)
_KOREAN = (
    "은 는 이 가 을 를 의 에 로 와 과 랑 도 만 께 들 에서 에게 께서 한테 으로 이랑 까지 부터 "
    "조차 마저 밖에 보다 처럼 마다 이나 든지 라도 라고 라는 이란 에는 에도 로는 와는 과는 "
    "만은 들은 들이 들을 들의 에게서 이라도 이라고 이라는 에서는 에서도 으로는 으로도 까지는 "
    "부터는 다 고 며 면 지 게 기 으면 지는 지도 지만 어서 아서 여서 어도 아도 어야 아야 려고 "
    "려면 도록 는데 거나 으려고 으려면 더라도 인 일 한 할 하는 하면 하고 하여 하지 하기 하게 "
    "해서 해야 하려면 된 될 되는 되면 되고 되지 되어 되기 되게"
)


def _any_of(endings: str) -> str:
    return "|".join(sorted(endings.split(), key=len, reverse=True))


# In Japanese between the word and whatever is not hiragana, in Korean at the end of the word. What
# is left of it has to be a term: two characters, or one of those that are terms alone.
_TIES = re.compile(
    rf"(?:(?<=[^\W{_HIRAGANA}{_KATAKANA}])|(?<=[{_KATAKANA}]{{2}}))"
    rf"(?:{_any_of(_JAPANESE)})++(?![{_HIRAGANA}])|"
    rf"(?<=[{_HANGUL}]{{2}})(?:{_any_of(_KOREAN)})(?![{_HANGUL}])"
)


def without_particles(text: str) -> str:
    """`text`, in NFKC, with a space for what only ties its words together."""
    return _TIES.sub(" ", text)
