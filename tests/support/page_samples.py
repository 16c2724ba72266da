"""Pages of the web as they are: an article, and around it what every page of the site has."""

from __future__ import annotations

from typing import NamedTuple


class Article(NamedTuple):
    """What a page is about, in one language."""

    language: str
    title: str
    paragraphs: tuple[str, ...]
    section: str
    items: tuple[str, ...]
    cells: tuple[tuple[str, str], ...]
    around: tuple[str, ...]
    """What stands around it: cookies, navigation, advertisement, related, footer."""


ENGLISH = Article(
    "en",
    "How the old sluice is opened",
    (
        "The sluice opens at dawn, when the river has risen to the second mark on the stone wall, "
        "and the keeper writes the time into a book that has been kept since the gate was built.",
        "On days without wind two people are enough to turn the wheel; in winter, when ice has "
        "settled on the chains, it takes four of them and the better part of an hour.",
        "Nobody is allowed on the bridge meanwhile, because the water that is let through carries "
        "branches, and once it carried away a cart with everything that had been loaded on it.",
    ),
    "Levels that are written down",
    ("The level above the gate, read twice.", "The level below it, read by somebody else."),
    (("Gate", "Level"), ("North", "12.5"), ("South", "7.25")),
    (
        "We value your privacy: accept all cookies to continue",
        "Home Subscribe Newsletter Sign in",
        "Buy rubber boots at half the price",
        "You might also like: ten bridges to see before you die",
        "Copyright 2026 River Media. All rights reserved. Imprint",
    ),
)
JAPANESE = Article(
    "ja",
    "古い水門の開け方について",
    (
        "水門は夜明けに開く。川の水位が石垣の二番目の印まで上がると、番人は門ができた日から続く帳面に"
        "その時刻を書き入れる。帳面はすでに百冊を超え、役場の蔵に大切に保管されている。",
        "風のない日は二人で輪を回せるが、冬になって鎖に氷がつくと四人がかりでも一時間近くかかる。"
        "そのあいだ村の子どもたちは土手の上から作業を見守り、終わると歓声をあげる。",
        "作業のあいだ橋に立ち入ることは許されない。流れ出る水は枝を運び、かつては荷物を積んだ荷車を"
        "まるごと押し流したこともあるからだ。その荷車は三日後に下流の町で見つかった。",
    ),
    "記録される水位",
    ("門の上流の水位を二度読み取る。", "下流の水位は別の者が読み取る。"),
    (("門", "水位"), ("北", "12.5"), ("南", "7.25")),
    (
        "当サイトではクッキーを使用しています。すべて同意する",
        "ホーム 会員登録 ログイン お問い合わせ",
        "長靴が半額セール実施中",
        "関連記事：死ぬまでに見たい橋十選",
        "著作権所有 川メディア 無断転載を禁じます",
    ),
)
KOREAN = Article(
    "ko",
    "오래된 수문을 여는 방법",
    (
        "수문은 새벽에 열린다. 강물이 돌담의 두 번째 표시까지 차오르면 수문지기는 문이 세워진 "
        "날부터 이어져 온 장부에 그 시각을 적는다. 장부는 벌써 백 권이 넘어 창고에 보관되어 있다.",
        "바람이 없는 날에는 두 사람이면 바퀴를 돌릴 수 있지만, 겨울이 되어 쇠사슬에 얼음이 붙으면 "
        "네 사람이 달라붙어도 한 시간 가까이 걸린다. 그동안 아이들은 둑 위에서 작업을 지켜본다.",
        "작업하는 동안에는 아무도 다리에 들어갈 수 없다. 쏟아져 나오는 물이 나뭇가지를 싣고 "
        "내려오고, 한번은 짐을 가득 실은 수레를 통째로 떠내려 보낸 적도 있기 때문이다.",
    ),
    "기록하는 수위",
    ("수문 위쪽의 수위를 두 번 읽는다.", "아래쪽 수위는 다른 사람이 읽는다."),
    (("수문", "수위"), ("북쪽", "12.5"), ("남쪽", "7.25")),
    (
        "이 사이트는 쿠키를 사용합니다. 모두 동의하고 계속하기",
        "홈 구독 로그인 고객센터",
        "장화 반값 할인 행사 중",
        "관련 기사: 죽기 전에 봐야 할 다리 열 곳",
        "저작권자 강미디어 무단 전재 및 재배포 금지",
    ),
)
ARTICLES = {one.language: one for one in (ENGLISH, JAPANESE, KOREAN)}


def page(article: Article = ENGLISH, *, head: str = "", charset: str = "utf-8") -> bytes:
    """The article among all the rest. Nothing in it names the charset, unless `head` does."""
    cookies, navigation, advertisement, related, footer = article.around
    links = "".join(
        f'<li><a href="/{n}">{word}</a></li>' for n, word in enumerate(navigation.split())
    )
    rows = "".join(f"<tr><td>{left}</td><td>{right}</td></tr>" for left, right in article.cells)
    items = "".join(f"<li>{item}</li>" for item in article.items)
    first, *rest = article.paragraphs
    text = f"""<!DOCTYPE html>
<html lang="{article.language}"><head>{head}<title>{article.title} | River</title>
<meta name="author" content="Ada Weir">
<meta property="article:published_time" content="2024-03-02T10:00:00Z"></head>
<body>
<div id="cookie-consent" class="cookie-banner"><p>{cookies}</p><button>OK</button></div>
<header class="site-header"><nav><ul>{links}</ul></nav></header>
<main><article><h1>{article.title}</h1>
<p>{first}</p>{"".join(f"<p>{one}</p>" for one in rest)}
<h2>{article.section}</h2><ul>{items}</ul>
<table>{rows}</table>
</article></main>
<div class="advertisement"><p>{advertisement}</p></div>
<aside class="related-posts"><ul><li><a href="/r">{related}</a></li></ul></aside>
<footer class="site-footer"><p>{footer}</p></footer>
<script>track("{cookies}");</script></body></html>"""
    return text.encode(charset)
