"""Certificates that an authority of OpenSSL signs: RSA keys, chains, revoked and expired certificates, keys
with a password.
"""

import subprocess
import sys
from pathlib import Path

import pymongo
import pytest
from pymongo.errors import AutoReconnect, OperationFailure, ServerSelectionTimeoutError

from windrow_server import Server

sys.path.insert(0, str(Path(__file__).parent))
import certificates  # noqa: E402

CONFIGURATION = """\
[ca]
default_ca = authority
[authority]
dir = {folder}
database = $dir/index.txt
serial = $dir/serial
new_certs_dir = $dir
default_md = sha256
default_days = 30
default_crl_days = 30
policy = anything
unique_subject = no
copy_extensions = copy
crlnumber = $dir/crlnumber
crl_extensions = list_extensions
[anything]
organizationName = optional
commonName = supplied
[req]
distinguished_name = name
[name]
[list_extensions]
authorityKeyIdentifier = keyid:always
[authority_extensions]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
"""


class Authority:
    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        (folder / "index.txt").touch()
        (folder / "serial").write_text("1000")
        (folder / "crlnumber").write_text("1000")
        (folder / "conf").write_text(CONFIGURATION.format(folder=folder))
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
                     "-days", "30", "-subj", "/CN=Authority", "-extensions", "authority_extensions")

    def openssl(self, command, *options):
        needs_configuration = command in ("ca", "req")
        subprocess.run(["openssl", command, *(["-config", "conf"] if needs_configuration else []),
                        *options], cwd=self.folder, check=True, capture_output=True)

    def sign(self, name, subject, *dates, is_authority=False, issuer="ca"):
        """Makes NAME.pem, with certificate and key."""
        alternatives = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out",
                     f"{name}.csr", "-subj", subject, *([] if is_authority else alternatives))
        extensions = ["-extensions", "authority_extensions"] if is_authority else []
        self.openssl("ca", "-batch", "-notext", "-cert", f"{issuer}.pem", "-keyfile", f"{issuer}.key",
                     "-in", f"{name}.csr", "-out", f"{name}.crt", *extensions, *dates)
        parts = [(self.folder / f"{name}.{kind}").read_text() for kind in ("crt", "key")]
        (self.folder / f"{name}.pem").write_text("".join(parts))
        return self.folder / f"{name}.pem"

    def revoke(self, *names):
        """Makes crl.pem."""
        for name in names:
            self.openssl("ca", "-cert", "ca.pem", "-keyfile", "ca.key", "-revoke", f"{name}.crt")
        self.openssl("ca", "-cert", "ca.pem", "-keyfile", "ca.key", "-gencrl", "-out", "crl.pem")
        return self.folder / "crl.pem"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority") / "files")
    authority.sign("server", "/O=Windrow/CN=server")
    authority.sign("alice", "/O=Windrow/CN=alice")
    authority.sign("bob", "/O=Windrow/CN=bob")
    return authority


def ping(server, **options):
    options = {"serverSelectionTimeoutMS": 2000, "directConnection": True, **options}
    with pymongo.MongoClient("127.0.0.1", server.port, **options) as client:
        return client.admin.command("ping")["ok"]


def refuses(server, **options):
    with pytest.raises((AutoReconnect, ServerSelectionTimeoutError)):
        ping(server, **options)


def test_rsa_keys_are_accepted(authority, tmp_path):
    folder = authority.folder
    options = certificates.client_options(folder, "alice")
    with Server(tmp_path, options=certificates.server_options(folder, "require", "--tls-ca-file",
                                                              str(folder / "ca.pem")),
                connection=options) as server:
        assert ping(server, **options) == 1
        assert '"clientCertificate":"CN=alice,O=Windrow"' in server.log()
        status = server.client().admin.command("serverStatus")
        assert status["security"]["SSLServerSubjectName"] == "CN=server,O=Windrow"


def test_revoked_certificates_are_refused(authority, tmp_path):
    folder = authority.folder
    alice, bob = (certificates.client_options(folder, name) for name in ("alice", "bob"))
    options = certificates.server_options(folder, "require", "--tls-ca-file", str(folder / "ca.pem"),
                                          "--tls-crl-file", str(authority.revoke()))
    with Server(tmp_path, options=options, connection=alice) as server:
        assert ping(server, **bob) == 1
        authority.revoke("bob")
        assert server.client().admin.command("rotateCertificates")["ok"] == 1
        assert ping(server, **alice) == 1
        refuses(server, **bob)
        assert "Revoked" in server.log()


def test_a_chain_is_sent_to_clients(authority, tmp_path):
    """The clients know the authority above the one that signed the certificate."""
    folder = authority.folder
    authority.sign("middle", "/CN=Middle", is_authority=True)
    (folder / "middle.pem").write_text((folder / "middle.crt").read_text())
    leaf = authority.sign("below", "/CN=below", issuer="middle")
    with Server(tmp_path, options=["--tls-mode", "require", "--tls-certificate-key-file", str(leaf)],
                start=False) as server:
        server.connection = certificates.client_options(folder)
        leaf.write_text(leaf.read_text() + (folder / "middle.crt").read_text())
        server.start()
        assert ping(server, **server.connection) == 1


def test_expired_certificates_are_refused(authority, tmp_path):
    folder = authority.folder
    past = ["-startdate", "20200101000000Z", "-enddate", "20210101000000Z"]
    expired = authority.sign("expired", "/CN=expired", *past)
    options = ["--tls-mode", "require", "--tls-certificate-key-file"]
    with pytest.raises(RuntimeError, match="valid from 2020-01-01T00:00:00"):
        Server(tmp_path / "expired", options=[*options, str(expired)])
    alice = certificates.client_options(folder, "alice")
    with Server(tmp_path / "server", options=certificates.server_options(
            folder, "require", "--tls-ca-file", str(folder / "ca.pem")), connection=alice) as server:
        refuses(server, **{**alice, "tlsCertificateKeyFile": str(expired)})
        assert "Expired" in server.log() or "expired" in server.log()


def test_keys_with_a_password_need_it(authority, tmp_path):
    folder = authority.folder
    authority.openssl("pkcs8", "-topk8", "-in", "server.key", "-out", "locked.key", "-passout", "pass:a")
    locked = folder / "locked.pem"
    locked.write_text((folder / "server.crt").read_text() + (folder / "locked.key").read_text())
    with pytest.raises(RuntimeError, match="private key is encrypted: --tls-certificate-key-file-password"):
        Server(tmp_path, options=["--tls-mode", "require", "--tls-certificate-key-file", str(locked)])


def test_rotation_needs_a_privilege(authority, tmp_path):
    folder = authority.folder
    plain = certificates.client_options(folder)
    with Server(tmp_path, options=certificates.server_options(folder), connection=plain) as server:
        admin = server.client().admin
        admin.command("createUser", "root", pwd="a", roles=["root"])
        root = server.client(username="root", password="a")
        root.admin.command("createUser", "reader", pwd="b", roles=["read"])
        with pytest.raises(OperationFailure) as failed:
            server.client(username="reader", password="b").admin.command("rotateCertificates")
        assert failed.value.code == 13
        assert root.admin.command("rotateCertificates")["ok"] == 1
