"""Strangers at the ports of a group that waits and of one that trains: it ends with the same bits.

usage: strangers.py TANDEM"""
import contextlib
import os
import resource
import signal
import socket
import ssl

from support.group import check, expect_same, fresh, group, outcome, run, until, workplace

LINE = ("fit {start}/mlp_dropout.keras --train {start}/grey --seed 3 --epochs 20 --batch-size 8 --quiet --shards 3 --csv-log log.csv "
        "--output out.keras")
SILENT = 1000  # at the ports of those who wait, and as many again when they train
GARBAGE = (b"", b"\0", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff\xff\xff", b"SSH-2.0-OpenSSH_9.2\r\n", os.urandom(4096))


def client_hello():
    """What a client without the key says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), 60)


def say(port, words):
    """Says it, and leaves."""
    with contextlib.suppress(OSError), connect(port) as stranger:  # the group may have ended
        stranger.sendall(words)


def disturb(ports, silent):
    """The silent ones stay, in the list."""
    hello = client_hello()
    for port in ports:
        for words in (*GARBAGE, hello, hello[:len(hello) // 2], hello + os.urandom(500)):
            say(port, words)
        stays = connect(port)
        stays.sendall(hello[:100])
        silent.append(stays)
    for number in range(SILENT if len(ports) > 1 else 0):
        silent.append(connect(ports[number % len(ports)]))


def answers(port):
    with contextlib.suppress(ConnectionError):
        connect(port).close()
        return True
    return False


def has_another_secret(tasks, index, name):
    """A process of Tandem with another secret: refused, in a sentence."""
    other = tasks.folder / f"secret-{name}"
    other.write_bytes(os.urandom(32))
    other.chmod(0o600)
    spare = socket.socket()
    spare.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    spare.bind(("127.0.0.1", 0))
    stranger = tasks.start(index, f"{tasks.line} --bind 127.0.0.1:{spare.getsockname()[1]}", name=name, folder=tasks.folder / name,
                           TANDEM_SECRET_FILE=str(other))
    check.expect(stranger.wait() in (1, 2) and "another secret" in stranger.err, f"{name}: {stranger.err}")
    spare.close()


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with workplace() as root:
        check.begin("strangers at the ports")
        line = LINE.format(start=root / "start")
        alone, silent = fresh(root / "alone"), []
        check.expect(run(line, alone).returncode == 0, "alone")
        with group(fresh(root / "group"), 3) as tasks:
            tasks.line = f"{line} --devices cpu:0"
            first = [tasks.start(index, tasks.line) for index in (0, 1)]
            until(lambda: all(answers(port) for port in tasks.ports.numbers[:2]), "two of them listen")
            disturb(tasks.ports.numbers[:2], silent)
            has_another_secret(tasks, 2, "early")
            started = [*first, tasks.start(2, tasks.line)]
            until(lambda: (first[0].folder / "log.csv").exists(), "they train")
            started[2].kill(signal.SIGSTOP)  # in the midst: the others wait for it, and for strangers
            during = all(task.process.poll() is None for task in started)
            has_another_secret(tasks, 2, "late")
            disturb(tasks.ports.numbers[:2], silent)
            started[2].kill(signal.SIGCONT)
            check.expect([task.wait() for task in started] == [0, 0, 0], f"{[task.err for task in started]}")
            check.expect(during, "they had ended before the strangers came")
            expect_same(outcome(alone), outcome(first[0].folder, but=("task0",)), "an undisturbed run")
            check.expect("a connection was refused: 127.0.0.1:" in first[0].err, f"nothing was said of it: {first[0].err}")
        for stranger in silent:
            stranger.close()
    check.finish()


if __name__ == "__main__":
    main()
