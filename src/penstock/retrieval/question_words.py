"""Question words of Japanese and Korean.

なぜ and 이유는 say nothing of what is looked for. Passages seldom hold them, so they would count as
rare words and lift the few passages that do. Where words are set apart by spaces they are among the
stop words.
"""

from __future__ import annotations

import re

_JAPANESE = (
    r"(?:とは|のは|って)?(?:何故|なぜ|どうして|どのように|どのような|どのくらい|どれくらい|どのぐらい|"
    r"どれぐらい|どうすれば|どうやって|どんな|どちら|どの|どれ|どこ|どう|いつ|誰|だれ|何|なに|なん)|"
    r"について(?:は|の)?|とは|理由|(?:を)?教えて(?:ください|下さい)?|(?:よ|良)?いですか|"
    r"(?:なの|の)?(?:です|ます|ません|でした|ました|でしょう)か|か(?=[。?]|\s|$)"
)
_KOREAN = (
    r"무엇(?:인가요|인지|입니까|일까요|이며|을|이)?|뭔가요|뭐예요|뭐가|뭐|왜|어떻게|어떤|무슨|"
    r"어디(?:에서|에|서)?|언제(?:까지|부터)?|얼마나|얼마|몇|누가|이유(?:는|가|를)?|까닭(?:은|이|을)?|"
    r"에 대해|알려 ?주세요|설명해 ?주세요|(?:인가요|은가요|는가요|나요|까요|습니까|니까)(?=\W|$)"
)
_ASKING = re.compile(f"{_JAPANESE}|{_KOREAN}")


def without_asking(text: str) -> str:
    """`text`, in lower case and NFKC, with a space for each word that only asks."""
    return _ASKING.sub(" ", text)
