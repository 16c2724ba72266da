"""Which process runs which test."""

from tests.support.parallel import Plan


def everything(plan: Plan, worker: int) -> list[int]:
    told = []
    while (number := plan.next(worker)) is not None:
        told.append(number)
    return told


def test_file_is_run_by_one_process_in_its_order() -> None:
    plan = Plan([[0, 1, 2], [3, 4]])
    assert [plan.next(0), plan.next(1), plan.next(0), plan.next(1)] == [0, 3, 1, 4]
    assert everything(plan, 0) == [2]
    assert everything(plan, 1) == []


def test_who_has_nothing_left_takes_the_later_half_of_another() -> None:
    plan = Plan([range(7)])
    assert plan.next(0) == 0
    assert everything(plan, 1) == [4, 5, 6, 2, 3, 1]
    assert plan.next(0) is None


def test_what_a_dead_process_was_told_is_run_by_the_next_in_its_place() -> None:
    plan = Plan([range(4)])
    assert [plan.next(0), plan.next(0)] == [0, 1]
    plan.give_back(0, [1])
    assert everything(plan, 0) == [1, 2, 3]
