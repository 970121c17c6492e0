"""Mails, their attachments and archives, indexed by `windrow index` and found by `windrow search`."""

import gzip
import io
import mailbox
import pathlib
import sys
import tarfile
from email.message import EmailMessage

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_folders import index, windrow  # noqa: E402

from windrow_server import Server

MAIL_ID = "<bread-1@example.org>"


def tar_xz(name, text):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    return archive.getvalue()


def mail(subject, text, message_id):
    message = EmailMessage()
    message["From"] = "Ada Lovelace <ada@example.org>"
    message["To"] = "Bob <bob@example.org>"
    message["Bcc"] = "quillsecret@example.org"
    message["Subject"] = subject
    message["Date"] = "Mon, 4 Mar 2024 10:00:00 +0000"
    message["Message-ID"] = message_id
    message["List-Id"] = "Words about bread <breadlist.example.org>"
    message.set_content(text)
    return message


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    work = tmp_path_factory.mktemp("mail")
    (work / "files").mkdir()
    first = mail("Archives", "The brindlewren sings.\n\nFrom here on, nothing is lost.\n", MAIL_ID)
    first.add_attachment(tar_xz("notes/deep.txt", b"A velvetnewt swims."), "application", "x-xz",
                         filename="notes.tar.xz")
    box = mailbox.mbox(work / "files" / "inbox")
    for message in (first, mail("Second", "The copperlark flies.", "<bread-2@example.org>")):
        box.add(message)
    box.flush()
    box.close()
    folder = mailbox.Maildir(work / "files" / "folder")
    folder.add(mail("Third", "The marshpipit walks.", "<bread-3@example.org>"))
    index(work / "files", work)
    return work


@pytest.mark.parametrize("query, path", [
    ("brindlewren", "inbox/#1"),
    ("velvetnewt", "inbox/#1!/1/notes.tar.xz!/notes/deep.txt"),
    ("copperlark", "inbox/#2"),
    ("to:quillsecret copperlark", "inbox/#2"),
    ("list:breadlist subject:second", "inbox/#2"),
    ('"nothing is lost"', "inbox/#1"),
])
def test_a_part_of_a_mailbox_is_found(indexed, query, path):
    assert windrow("search", "-l", query, "--data", indexed / "data").stdout == f"{indexed}/files/{path}\n"


def test_a_message_of_a_maildir_is_found(indexed):
    found = windrow("search", "-l", "marshpipit from:ada date:2024", "--data", indexed / "data")
    assert "/files/folder/new/" in found.stdout


def test_an_attachment_refers_to_its_mail(indexed):
    with Server(indexed) as server:
        documents = server.client().files.documents
        attachment = documents.find_one({"filename": "deep.txt"})
        assert attachment["attached_to"]["message_id"] == MAIL_ID.strip("<>")
        message = documents.find_one({"_id": attachment["attached_to"]["_id"]})
        assert message["subject"] == "Archives" and message["bcc"] == ["quillsecret@example.org"]


def test_an_attachment_without_text_refers_to_its_mail(tmp_path):
    """One of a format without an extractor, and one that is damaged."""
    mail = EmailMessage()
    mail["Subject"], mail["Message-ID"] = "Two files", "<two@example.org>"
    mail.set_content("Both are attached.")
    for data, name in [(b"\x00\x01\x00\x00" + bytes(60), "letters.ttf"),
                       (b"PK\x03\x04" + bytes(60), "damaged.docx")]:
        mail.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "two.eml").write_bytes(mail.as_bytes())
    index(tmp_path / "files", tmp_path)
    with Server(tmp_path) as server:
        documents = server.client().files.documents
        mail = documents.find_one({"subject": "Two files"})
        for name in ["letters.ttf", "damaged.docx"]:
            attachment = documents.find_one({"filename": name})
            assert attachment["unread"], name
            assert attachment["attached_to"] == {
                "_id": mail["_id"], "message_id": "two@example.org"}, name


FIXTURES = pathlib.Path(__file__).parents[2] / "crates/extract/tests/fixtures"


@pytest.fixture(scope="module", params=["items.pst", "items.ost"])
def data_file(request, tmp_path_factory):
    """A data file of Outlook."""
    work = tmp_path_factory.mktemp("outlook")
    (work / "files").mkdir()
    content = gzip.decompress((FIXTURES / f"{request.param}.gz").read_bytes())
    (work / "files" / "items").write_bytes(content)
    index(work / "files", work)
    return work


@pytest.mark.parametrize("query, path", [
    ("subject:größe from:lovelace to:bob date:2024-01-02", "!/Inbox#65536"),
    ("roggen", "!/Inbox#65536!/1/Größen.csv"),
    ("köln", "!/Inbox#65537"),
    ("хлеб", "!/Inbox#65538"),
    ("navy hopper", "!/Inbox/Bread_Rye#65539"),
    ("kitchen flour date:2024", "!/Inbox/Bread_Rye#65540"),
])
def test_an_item_of_a_data_file_of_outlook_is_found(data_file, query, path):
    found = windrow("search", "-l", query, "--data", data_file / "data")
    assert found.stdout == f"{data_file}/files/items/{path}\n"


def test_an_attachment_in_a_data_file_refers_to_its_mail(data_file):
    with Server(data_file) as server:
        documents = server.client().files.documents
        attachment = documents.find_one({"filename": "Größen.csv"})
        mail = documents.find_one({"_id": attachment["attached_to"]["_id"]})
        assert mail["subject"] == "Re: Größe der Brote"
        assert documents.count_documents({"unread": None}) == 48


def test_a_cut_off_data_file_is_a_failure_that_says_so(tmp_path):
    (tmp_path / "files").mkdir()
    content = gzip.decompress((FIXTURES / "items.pst.gz").read_bytes())
    (tmp_path / "files" / "cut.pst").write_bytes(content[:len(content) // 2])
    index(tmp_path / "files", tmp_path)
    with Server(tmp_path) as server:
        [failure] = server.client().files.failures.find()
        assert failure["reason"].startswith("damaged Outlook data file: ")
