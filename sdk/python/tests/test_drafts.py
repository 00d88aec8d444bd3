"""What a step asks for, before anybody is asked; and what becomes of names and refusals."""

import unittest
from datetime import timedelta

from interlock import Failure, Filter, From, Increment, Rejection, Set, checkpoint, field, step, steps, to
from interlock.steps import find


class Drafts(unittest.TestCase):
    def test_what_is_left_out_is_kept_and_none_is_null(self) -> None:
        kept = checkpoint()
        self.assertEqual((kept.data, kept.outputs), (None, None))
        self.assertEqual((checkpoint(data=None).data, checkpoint(outputs={}).outputs), ("null", "{}"))

    def test_changes_as_a_mapping_are_sets_in_order(self) -> None:
        changes = {"data.size": 4, "data.at": From("now")}
        self.assertEqual(to("ready", set=changes).content.set, (Set("data.size", 4), Set("data.at", From("now"))))
        self.assertEqual(to("ready", set=[Increment("data.n")]).content.set, (Increment("data.n", 1),))

    def test_a_document_that_is_none_is_refused_where_it_is_drafted(self) -> None:
        with self.assertRaises(Rejection) as caught:
            to("ready", outputs={"at": float("nan")})
        self.assertEqual(str(caught.exception), "json: outputs.at: expected a finite number, got nan")


class Filters(unittest.TestCase):
    def test_both_and_either(self) -> None:
        a, b, c = field("a").eq(1), field("b").missing(), field("c").one_of([1, 2])
        both = (a | b) & c
        self.assertEqual([len(group) for group in both.groups], [2, 2])
        self.assertEqual([test.field for test in both.groups[1]], ["b", "c"])
        self.assertEqual(len((a | b | c).groups), 3)

    def test_an_empty_one_matches_everything(self) -> None:
        a = field("a").eq(1)
        self.assertEqual((Filter() & a, a & Filter()), (a, a))
        self.assertEqual((Filter() | a, a | Filter()), (Filter(), Filter()))


class Steps(unittest.TestCase):
    def setUp(self) -> None:
        before = dict(steps.STEPS)
        steps.STEPS.clear()
        self.addCleanup(steps.STEPS.update, before)
        self.addCleanup(steps.STEPS.clear)

    def test_a_step_is_found_by_its_name_in_the_manifest(self) -> None:
        @step
        def check_quota(entity):  # type: ignore[no-untyped-def]
            return entity

        @step("move")
        def move_pool(entity):  # type: ignore[no-untyped-def]
            return entity

        self.assertIs(find("check-quota"), check_quota)
        self.assertIs(find("check_quota"), check_quota)
        self.assertIs(find("move"), move_pool)
        self.assertEqual(check_quota(7), 7)

    def test_an_unknown_step_is_a_permanent_failure_that_names_those_there_are(self) -> None:
        step("plan")(lambda entity: entity)
        step("verify")(lambda entity: entity)
        with self.assertRaises(Failure) as caught:
            find("paln")
        self.assertEqual(
            str(caught.exception),
            "unknown-step (permanent): this component has no step 'paln'; it has plan, verify",
        )

    def test_two_steps_of_one_name_are_a_mistake(self) -> None:
        step("check-quota")(lambda entity: entity)
        with self.assertRaisesRegex(ValueError, "two steps are called 'check-quota'"):
            step("check_quota")(lambda entity: entity)


class Refusals(unittest.TestCase):
    def test_a_rejection_that_nobody_caught_becomes_a_failure(self) -> None:
        busy = Rejection("busy", "held", "lease x", "nobody", "tests", True, timedelta(seconds=2))
        failure = Failure.of(busy)
        self.assertEqual(str(failure), "held (retry): held: lease x: expected nobody, got tests")
        self.assertEqual((failure.is_permanent, failure.retry_after), (False, timedelta(seconds=2)))
        self.assertTrue(Failure.of(Rejection("guard", "guard", "data", "a", "b")).is_permanent)


if __name__ == "__main__":
    unittest.main()
