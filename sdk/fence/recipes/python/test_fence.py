"""`python3 -m unittest` in this folder. With FENCE_DB, also a database whose fences the Rust crate has raised."""

import http.client
import json
import os
import sqlite3
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

import fence

WRITERS = range(1, 9)
POOL = "pool/gpu-7"


def connect(path):
    return sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)


def effect(token, key="any", body=b""):
    headers = [("Idempotency-Key", key), ("Interlock-Fence-Resource", POOL), ("Interlock-Fencing-Token", str(token))]
    return fence.read("PUT", "/pools/gpu-7", headers, body)


class OnDisk(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "receiver.db")
        self.db = self.connection()
        self.db.executescript(fence.TABLES + "CREATE TABLE ledger (entries TEXT); INSERT INTO ledger VALUES ('');")

    def connection(self):
        db = connect(self.path)
        self.addCleanup(db.close)
        return db

    def ledger(self, db=None):
        return (db or self.db).execute("SELECT entries FROM ledger").fetchone()[0]

    def write(self, db, seen, token):
        db.execute("UPDATE ledger SET entries = ?", (f"{seen}{token};",))

    def run_effect(self, effect):
        with fence.transaction(self.db):
            answer = fence.admit(self.db, effect)
            if answer is None:
                self.write(self.db, self.ledger(), effect.token)
                answer = (201, b"{}")
                fence.remember(self.db, effect, *answer)
        return answer

    def refused(self, effect):
        with self.assertRaises(fence.Refused) as caught:
            self.run_effect(effect)
        return caught.exception.problem

    def test_outside_of_the_transaction_all_updates_but_one_are_lost(self):
        paused = []
        for token in WRITERS:
            db = self.connection()
            with fence.transaction(db):
                fence.admit(db, effect(token))
            paused.append((db, self.ledger(db), token))
        for writer in reversed(paused):
            self.write(*writer)
        self.assertEqual(self.ledger(), "1;")

    def test_inside_the_transaction_no_update_is_lost(self):
        waiting = [(self.connection(), token) for token in WRITERS]
        while waiting:
            db, token = waiting.pop(0)
            with fence.transaction(db):
                fence.admit(db, effect(token))
                seen = self.ledger(db)
                for other, _ in waiting:
                    with self.assertRaisesRegex(sqlite3.OperationalError, "locked"), fence.transaction(other):
                        self.fail("two writers at a time")
                self.write(db, seen, token)
        self.assertEqual(self.ledger(), "1;2;3;4;5;6;7;8;")

    def test_late_owners_are_refused_and_what_was_done_is_answered_again(self):
        self.run_effect(effect(5, "e1", b"4"))
        self.run_effect(effect(7, "e2", b"8"))
        problem = self.refused(effect(6, "e3", b"2"))
        self.assertEqual((problem["status"], problem["code"]), (412, "fenced"))
        self.assertEqual(problem["detail"], "pool/gpu-7: expected a token of at least 7, got 6")
        self.assertEqual(self.run_effect(effect(5, "e1", b"4")), (201, b"{}"))
        self.assertEqual(self.refused(effect(5, "e1", b"9"))["code"], "id_reused")
        self.assertEqual(self.ledger(), "5;7;")
        self.assertEqual(fence.forget(self.db, 3600), 0)
        self.assertEqual(fence.forget(self.db, 0), 2)
        self.assertEqual(self.refused(effect(6, "e4"))["code"], "fenced")

    def test_without_a_transaction_nothing_is_admitted(self):
        with self.assertRaisesRegex(RuntimeError, "expected the transaction that will write"):
            fence.admit(self.db, effect(5))

    def test_over_http(self):
        case = self

        class Receiver(BaseHTTPRequestHandler):
            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    status, answer = case.run_effect(fence.read(self.command, self.path, self.headers.items(), body))
                except fence.Refused as no:
                    status, answer = no.status, json.dumps(no.problem).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Receiver)
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)

        def send(*tokens):
            connection = http.client.HTTPConnection(*server.server_address)
            connection.putrequest("PUT", "/pools/gpu-7")
            connection.putheader("Idempotency-Key", "-".join(tokens))
            connection.putheader("Interlock-Fence-Resource", "pool/größe".encode())
            for token in tokens:
                connection.putheader("Interlock-Fencing-Token", token)
            connection.putheader("Content-Length", "0")
            connection.endheaders()
            status = connection.getresponse().status
            connection.close()
            return status

        self.assertEqual([send("7"), send("6"), send("8"), send("8", "9"), send()], [201, 412, 201, 400, 400])
        rows = self.db.execute("SELECT resource, token FROM interlock_fences").fetchall()
        self.assertEqual(rows, [("pool/größe", 8)])


class Shared(unittest.TestCase):
    def test_headers_are_read_as_in_every_language(self):
        with open(os.path.join(os.path.dirname(__file__), "../headers.json"), encoding="utf-8") as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 20)
        for case in cases:
            headers = [(name, value.encode().decode("latin-1")) for name, value in case["headers"]]
            accepted = refused = None
            try:
                read = fence.read("POST", "/", headers, b"")
                accepted = {"key": read.key, "resource": read.resource, "token": read.token}
            except fence.Refused as no:
                refused = {"header": no.problem["subject"], "got": no.problem["got"]}
            with self.subTest(case["name"]):
                self.assertEqual((accepted, refused), (case.get("accept"), case.get("refuse")))

    def test_the_digest_is_that_of_every_language(self):
        headers = [("Idempotency-Key", "e1"), ("Interlock-Fence-Resource", POOL), ("Interlock-Fencing-Token", "5")]
        read = fence.read("PUT", "/pools/a?dry=1", headers, b'{"size":4}')
        self.assertEqual(read.digest.hex(), "51012785f77a5df1ec3d1fdad4cbe7fa42bd42fb99cb877734080bd770e22988")

    @unittest.skipUnless("FENCE_DB" in os.environ, "only together with the Rust crate")
    def test_fences_of_the_rust_crate_hold_here(self):
        db = connect(os.environ["FENCE_DB"])
        self.addCleanup(db.close)
        with self.assertRaisesRegex(fence.Refused, "at least 7, got 6"), fence.transaction(db):
            fence.admit(db, effect(6, "new"))
        with fence.transaction(db):
            self.assertEqual(fence.admit(db, effect(6, "done", b"4")), (201, b"{}"))
        with fence.transaction(db):
            self.assertIsNone(fence.admit(db, effect(8, "here", b"8")))
            fence.remember(db, effect(8, "here", b"8"), 202, b"[]")


if __name__ == "__main__":
    unittest.main()
