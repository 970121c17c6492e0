"""101 words, each in a file of its own: encodings, entities of HTML, and forms of mail.

Each of them is found by `windrow search`.
"""

import base64
import binascii
import pathlib
import quopri
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import tree  # noqa: E402
from test_folders import index, windrow  # noqa: E402

# Text around the word, because the encoding detector needs some context.
GERMAN = "Über die Größe der Häuser schrieb er schöne Bücher, für alle Söhne. Das Wort ist {}. Später fällt Schnee."
FRENCH = "Les élèves français ont été très gênés à la fenêtre, où le garçon naïf a répété. Le mot est {}. Voilà déjà."
POLISH = "Zażółć gęślą jaźń, a potem źrebię wróciło do łąki pod Łodzią. Słowo to {}. Dziękuję, że pytałeś o święta."
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. Slovo je {}. Děti se těší na školu a na řeku."
RUSSIAN = ("Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. "
           "Слово {} написано здесь. Всё смешалось в доме.")
UKRAINIAN = "Як умру, то поховайте мене на могилі, серед степу широкого. Її слово {} є тут, і ґанок теж."
GREEK = ("Μῆνιν: όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. Η λέξη {} είναι εδώ. "
         "Είναι προικισμένοι με λογική.").replace("ῆ", "ή")
TURKISH = "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Sözcük {} buradadır. Çocuklar güldü, ağaç ışıdı."
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. המילה {} נמצאת כאן בתוך הטקסט."
ARABIC = "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. الكلمة {} موجودة هنا في النص."
BALTIC = "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Žodis {} yra čia, kaip ąžuolas ir šaltinis."
THAI = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน คำว่า {} อยู่ที่นี่"
JAPANESE = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。言葉は{}です。"
CHINESE = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。这个词是{}，在这里。"
TRADITIONAL = "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心。這個詞是{}，在這裡。"
KOREAN = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 낱말은 {} 입니다."
ENGLISH = "A plain sentence with the word {} in it, and then some more."

# encoding → (text, word)
ENCODINGS = {
    "utf-8": (GERMAN, "Quellwürze"), "utf-8-sig": (RUSSIAN, "берегиня"),
    "utf-16": (GERMAN, "Mühlstöcke"), "utf-16-le": (RUSSIAN, "дровосек"),
    "utf-16-be": (GREEK, "καραβάνι"), "utf-32": (FRENCH, "forêtelle"),
    "latin-1": (FRENCH, "crêpière"), "iso-8859-2": (POLISH, "gżegżółka"),
    "iso-8859-4": (BALTIC, "šaukštas"), "iso-8859-5": (RUSSIAN, "самовары"),
    "iso-8859-6": (ARABIC, "مدرسة"), "iso-8859-7": (GREEK, "θάλασσα"), "iso-8859-8": (HEBREW, "שלום"),
    "iso-8859-9": (TURKISH, "güneşli"), "iso-8859-13": (BALTIC, "žvaigždė"),
    "iso-8859-15": (FRENCH, "cœurage"), "koi8-r": (RUSSIAN, "колокольчик"), "koi8-u": (UKRAINIAN, "їжачок"),
    "cp1250": (CZECH, "žluťásek"), "cp1251": (RUSSIAN, "подсолнух"), "cp1252": (GERMAN, "Straßenbäume"),
    "cp1253": (GREEK, "πεταλούδα"), "cp1254": (TURKISH, "çiçekçi"), "cp1255": (HEBREW, "ירושלים"),
    "cp1256": (ARABIC, "مكتبة"), "cp1257": (BALTIC, "ežerėlis"), "cp866": (RUSSIAN, "медвежонок"),
    "mac-roman": (GERMAN, "Nüßchen"), "shift_jis": (JAPANESE, "桜吹雪"), "euc-jp": (JAPANESE, "金平糖"),
    "iso2022_jp": (JAPANESE, "蜃気楼"), "gb18030": (CHINESE, "蝴蝶兰"), "big5": (TRADITIONAL, "螢火蟲"),
    "euc-kr": (KOREAN, "무지개"), "tis-620": (THAI, "มะม่วง"),
}


def encoded_texts():
    for encoding, (text, word) in ENCODINGS.items():
        content = text.format(word)
        # Repeated, so that the detector gets a longer sample.
        content = "\n".join([content.replace(word, "x"), content, ""])
        bom = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
        yield f"encodings/{encoding}.txt", bom + content.encode(encoding), word


def declared_pages():
    """HTML and XML with a declared encoding."""
    cases = [("koi8-r", RUSSIAN, "черепаха"), ("windows-1251", RUSSIAN, "пароходик"),
             ("iso-8859-2", POLISH, "źdźbło"), ("shift_jis", JAPANESE, "入道雲"), ("gbk", CHINESE, "向日葵"),
             ("iso-8859-1", GERMAN, "Löwenzähne"), ("windows-1252", FRENCH, "sœurette"),
             ("euc-kr", KOREAN, "잠자리"), ("iso-8859-9", TURKISH, "kuşağı")]
    for encoding, text, word in cases:
        page = f'<html><head><meta charset="{encoding}"><title>A</title></head><body><p>{text.format(word)}</p>'
        yield f"pages/{encoding}.html", page.encode(encoding), word
    word = "Rübezahl"
    page = f'<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-15"><p>{GERMAN.format(word)}'
    yield "pages/http-equiv.html", page.encode("iso-8859-15"), word
    word = "Käsekrainer"
    document = f'<?xml version="1.0" encoding="ISO-8859-1"?><a><b>{GERMAN.format(word)}</b></a>'
    yield "pages/declared.xml", document.encode("latin-1"), word
    yield "pages/wide.html", ("\ufeff<html><body>" + GERMAN.format("Schöpfkelle")).encode("utf-16-le"), "Schöpfkelle"


# entities → word
ENTITIES = {
    "H&auml;hnchen": "Hähnchen", "B&#252;rste": "Bürste", "M&#xF6;we": "Möwe", "L&#XE4;rche": "Lärche",
    "Gr&uumlnfink": "Grünfink", "caf&eacuteteria": "caféteria", "Bl&#228ttchen": "Blättchen",
    "b&#156;uf": "bœuf", "z&#382;ivot": "zživot", "&#1078;&#1091;&#1088;&#1072;&#1074;&#1083;&#1100;": "журавль",
    "&Alpha;&theta;&eta;&nu;&alpha;": "Αθηνα", "r&amp;d&shy;werkbank": "dwerkbank",
    "tau&#xAD;werk": "tauwerk", "zwei&nbsp;sperling": "sperling", "e&ffilig;zient": "effizient",
    "wood&zwnj;pecker": "woodpecker", "na&iuml;vling": "naïvling", "&lt;tagwort&gt;": "tagwort",
    "u<b>nter</b>brochen": "unterbrochen", "st<!-- x -->ückwerk": "stückwerk",
}


def entities():
    for number, (source, word) in enumerate(ENTITIES.items()):
        page = f"<html><head><meta charset=utf-8></head><body><p>{ENGLISH.format(source)}</p></body></html>"
        yield f"entities/{number}.html", page, word


def mail(headers, body):
    lines = [b"From: Ada <ada@example.org>", b"To: bob@example.org", b"Date: Mon, 4 Mar 2024 10:00:00 +0000"]
    lines += [line if isinstance(line, bytes) else line.encode() for line in headers]
    return b"\r\n".join([*lines, b"", body if isinstance(body, bytes) else body.encode()])


def transfer_encodings():
    text = GERMAN.format("Zwetschgenknödel")
    plain = "Content-Type: text/plain; charset={}"
    quoted = quopri.encodestring(text.encode())
    yield "quoted", [plain.format("utf-8"), "Content-Transfer-Encoding: quoted-printable"], quoted, "Zwetschgenknödel"
    body = b"A soft line break di=\r\nvides the word regenschi=\r\nrmchen here"
    yield "soft", [plain.format("us-ascii"), "Content-Transfer-Encoding: quoted-printable"], body, "regenschirmchen"
    body = base64.encodebytes(RUSSIAN.format("матрёшка").encode("koi8-r"))
    yield "base64", [plain.format("koi8-r"), "Content-Transfer-Encoding: base64"], body, "матрёшка"
    body = base64.encodebytes(b"A word in pieces of base64: lanternfish").replace(b"\n", b"\r\n \r\n")
    yield "gaps", [plain.format("utf-8"), "Content-Transfer-Encoding: base64"], body, "lanternfish"
    body = FRENCH.format("épicière").encode("latin-1")
    yield "8bit", [plain.format("iso-8859-1"), "Content-Transfer-Encoding: 8bit"], body, "épicière"
    yield "undeclared", [], GERMAN.format("Kirschblüte").encode(), "Kirschblüte"
    yield "unlabelled", [], GERMAN.format("Hügelgräber").encode("latin-1"), "Hügelgräber"
    body = JAPANESE.format("線香花火").encode("iso2022_jp")
    yield "7bit", [plain.format("ISO-2022-JP"), "Content-Transfer-Encoding: 7bit"], body, "線香花火"
    body = b"This line is short, and the word sch \r\nwalbennest is flowed"
    yield "delsp", [plain.format("us-ascii") + "; format=flowed; delsp=yes"], body, "schwalbennest"
    body = b"These words flow: paper \r\nboat.\r\n"
    yield "flowed", [plain.format("us-ascii") + "; format=flowed"], body, '"paper boat"'
    part = binascii.b2a_uu(b"A word: kingfishery")
    yield "uu", [plain.format("us-ascii")], b"begin 644 note.txt\n" + part + b"`\nend\n", "kingfishery"


def headers():
    subject = base64.b64encode("Die Drachenhöhle".encode()).decode()
    yield "word-b", [f"Subject: =?utf-8?B?{subject}?="], "Drachenhöhle"
    yield "word-q", ["Subject: =?iso-8859-1?Q?Eine_M=E4rchenwiese?="], "Märchenwiese"
    yield "word-split", ["Subject: =?utf-8?Q?Ein_Regenb?=", " =?utf-8?Q?ogenfisch?="], "Regenbogenfisch"
    halves = "Glühwürmchen".encode()
    halves = [base64.b64encode(half).decode() for half in (halves[:3], halves[3:])]
    yield "word-cut", [f"Subject: =?utf-8?B?{halves[0]}?=\r\n =?utf-8?B?{halves[1]}?="], "Glühwürmchen"
    yield "word-koi8", ["Subject: =?koi8-r?B?" + base64.b64encode("письмо снегирь".encode("koi8-r")).decode() + "?="], "снегирь"
    yield "raw", ["Subject: Ein Eisvögelchen"], "Eisvögelchen"
    yield "raw-latin", ["Subject: Der Flußkrebs und die Mühle".encode("latin-1")], "Flußkrebs"
    yield "folded", ["Subject: A long subject that is", "\tfolded before hummingbirdie"], "hummingbirdie"
    yield "sender", ["Sender: x@example.org", "Cc: =?utf-8?Q?J=C3=BCrgen_Wachholderdrossel?= <j@example.org>"], "Wachholderdrossel"


def multipart(kind, *parts):
    body = "".join(f"--B\r\n{part}\r\n" for part in parts) + "--B--\r\n"
    return [f'Content-Type: multipart/{kind}; boundary="B"', "MIME-Version: 1.0"], body


def parts():
    text = "Content-Type: text/plain; charset=utf-8\r\n\r\n{}"
    name = "utf-8''Steuererkl%C3%A4rung%20heuschrecke.txt"
    attachment = f"Content-Type: text/plain\r\nContent-Disposition: attachment; filename*={name}\r\n\r\nx"
    yield "rfc2231", *multipart("mixed", text.format("a"), attachment), "heuschrecke"
    attachment = ("Content-Type: text/plain\r\nContent-Disposition: attachment;\r\n filename*0*=utf-8''schmetter;\r\n"
                  " filename*1*=l%C3%A4rche.txt\r\n\r\nx")
    yield "continued", *multipart("mixed", text.format("a"), attachment), "schmetterlärche"
    attachment = 'Content-Type: text/plain; name="=?utf-8?Q?Bl=C3=BCtenstaub.txt?="\r\n\r\nx'
    yield "encoded-name", *multipart("mixed", text.format("a"), attachment), "Blütenstaub"
    inner = "Content-Type: message/rfc822\r\n\r\nFrom: c@example.org\r\nSubject: inner\r\n\r\nThe marmotwhistle."
    yield "forwarded", *multipart("mixed", text.format("a"), inner), "marmotwhistle"
    inner = ('Content-Type: multipart/alternative; boundary="C"\r\n\r\n--C\r\n' + text.format("Eine Wiesenblüte.")
             + "\r\n--C--\r\n")
    yield "nested", *multipart("mixed", inner), "Wiesenblüte"
    page = ('Content-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<meta http-equiv=3D"Content-Type" '
            'content=3D"text/html; charset=3Diso-8859-1"><p>Ein B=E4renkl=E4uchen')
    yield "meta", *multipart("alternative", page), "Bärenkläuchen"
    page = "Content-Type: text/html; charset=utf-8\r\n\r\n<p>Only in the page: saltmarshes</p>"
    yield "html-only", *multipart("alternative", page), "saltmarshes"
    data = base64.encodebytes(tree.archive({"deep.txt": "In the archive a pangolinette."})).decode()
    packed = f"Content-Type: application/zip; name=a.zip\r\nContent-Transfer-Encoding: base64\r\n\r\n{data}"
    yield "packed", *multipart("mixed", packed), "pangolinette"
    report = "Content-Type: text/rfc822-headers\r\n\r\nSubject: the bouncebackery"
    yield "report", *multipart("report; report-type=delivery-status", text.format("a"), report), "bouncebackery"


def mails():
    for name, lines, body, word in transfer_encodings():
        yield f"mails/{name}.eml", mail([*lines, "Subject: s"], body), word
    for name, lines, word in headers():
        yield f"mails/{name}.eml", mail(lines, "text"), word
    for name, lines, body, word in parts():
        yield f"mails/{name}.eml", mail([*lines, "Subject: s"], body), word


def other_files():
    rtf = r"{\rtf1\ansi\ansicpg1251 \'ef\'f0\'e8 \'eb\'e8\'f1\'f2\'ee\'ef\'e0\'e4 \u1076?}"
    yield "other/page.rtf", rtf, "листопад"
    yield "other/combining.txt", "Das Wort Ka\u0308seglocke ist zerlegt.", "Käseglocke"
    yield "other/full-width.txt", "The word ＭＡＲＩＧＯＬＤＳ is wide.", "marigolds"
    yield "other/lines.txt", "Here the word sand-\ncastling is divided, and\rold\rMac\rlines.", "sandcastling"
    yield "other/nul-padded.txt", "A single word whimbrelet\n" + "\n" * 50, "whimbrelet"


FILES = [*encoded_texts(), *declared_pages(), *entities(), *mails(), *other_files()]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    work = tmp_path_factory.mktemp("words")
    for name, content, _ in FILES:
        tree.write(work / "files", name, content)
    index(work / "files", work)
    return work


def test_there_are_101_words():
    assert len(FILES) == 101
    assert len({word for _, _, word in FILES}) == len({name for name, _, _ in FILES}) == 101


@pytest.mark.parametrize("name, word", [(name, word) for name, _, word in FILES])
def test_a_word_is_found(indexed, name, word):
    query = word if word.startswith('"') else f'"{word}"'
    ended = windrow("search", "-l", query, "--data", indexed / "data")
    found = {re.split("/[#!]", line)[0] for line in ended.stdout.splitlines()}
    assert found == {str(indexed / "files" / name)}, ended.stdout + ended.stderr
