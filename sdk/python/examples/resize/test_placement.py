"""The search and the provider, without a host: `python -m unittest` in this folder."""

import unittest
from unittest import mock

import placement
import provider


class Placement(unittest.TestCase):
    def setUp(self) -> None:
        budget = mock.patch.object(placement, "BUDGET", 4_000)
        budget.start()
        self.addCleanup(budget.stop)

    def test_as_many_hosts_as_asked_for_each_once(self) -> None:
        for count in (1, 4, 64):
            names = placement.search(count, "train") or []
            self.assertEqual(len(set(names)), count)

    def test_the_same_answer_every_time(self) -> None:
        self.assertEqual(placement.search(8, "train"), placement.search(8, "train"))

    def test_a_small_pool_shares_no_rack(self) -> None:
        names = placement.search(8, "train") or []
        self.assertEqual(len({name[:2] for name in names}), 8, names)

    def test_an_image_too_large_for_any_host_has_no_room(self) -> None:
        self.assertIsNone(placement.search(1, "train-512g"))
        self.assertIsNotNone(placement.search(1, "train-128g"))

    def test_no_more_hosts_than_there_are(self) -> None:
        self.assertIsNone(placement.search(193, "train"))
        self.assertEqual(len(placement.search(192, "train") or []), 192)


class Provider(unittest.TestCase):
    def test_the_image_decides(self) -> None:
        self.assertEqual(provider.health("train", 1), "up")
        self.assertEqual(provider.health("train-slow-start", 2), "starting")
        self.assertEqual(provider.health("train-slow-start", 3), "up")
        self.assertEqual(provider.health("train-never-starts", 9), "starting")
        self.assertEqual(provider.health("train-withdrawn", 1), "withdrawn")


if __name__ == "__main__":
    unittest.main()
