"""Particles and endings of Japanese and Korean, which tie the words of a sentence together.

They are written without a space to the word they belong to, so the pairs of characters that hold
them differ from one sentence to the next: 냉장고에 of a question is 냉장고를 in its answer. Such
pairs are rare, and would count as telling; the word itself is found by its other pairs. In English
the like are words of their own, which are frequent and so count for little.
"""

from __future__ import annotations

import re

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
