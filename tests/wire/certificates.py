"""Certificates of `windrow certificate`, and TLS clients below a driver."""

import pathlib
import socket
import ssl
import subprocess

from windrow_server import binary


def make(folder, *clients, options=()):
    """Makes certificates in `folder` and returns it."""
    folder = pathlib.Path(folder)
    names = [option for name in clients for option in ("--client", name)]
    subprocess.run([str(binary()), "certificate", "--folder", str(folder), *names, *options],
                   check=True, capture_output=True)
    return folder


def server_options(folder, mode="require", *options):
    return ["--tls-mode", mode, "--tls-certificate-key-file", str(folder / "server.pem"), *options]


def client_options(folder, name=None):
    """The options of a MongoClient: with the certificate of this client, or without one."""
    options = {"tls": True, "tlsCAFile": str(folder / "ca.pem")}
    if name:
        options["tlsCertificateKeyFile"] = str(folder / f"{name}.pem")
    return options


def context(folder, name=None):
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    if name:
        context.load_cert_chain(folder / f"{name}.pem")
    return context


def connect(server, folder, name=None, seconds=10):
    """A socket with TLS."""
    plain = socket.create_connection(("127.0.0.1", server.port), seconds)
    return context(folder, name).wrap_socket(plain, server_hostname="localhost")


def s_client(server, folder, *options):
    """Connects with the `openssl` command. Returns whether it succeeded, and its output."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-verify_return_error",
               "-CAfile", str(folder / "ca.pem"), *options]
    ended = subprocess.run(command, input="", capture_output=True, text=True, timeout=30)
    return ended.returncode == 0, ended.stdout + ended.stderr
