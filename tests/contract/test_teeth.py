"""The contract bites: whatever is broken on purpose is caught by the promise that it breaks, and by name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
from contract import sabotage_contexts as contexts
from contract import sabotage_ends as ends
from contract import sabotage_reads as reads
from contract import sabotage_seals as seals
from contract import sabotage_writes as writes
from contract.sabotage import BrokenLedger
from contract.sabotage_contexts import BrokenContext

from casenotes.adapters.context import MemoryContextStore
from casenotes.adapters.memory import MemoryLedger
from casenotes.core.seal import ChainHead
from casenotes.ports.context import ContextStore
from casenotes.ports.contract import ContextContract, HeldClock, LedgerContract, OpenContext, OpenLedger
from casenotes.ports.contract.ends import off_the_chain
from casenotes.ports.contract.lifecycle import succeeded
from casenotes.ports.contract.stage import at
from casenotes.ports.ledger import Ledger

CAUGHT = (AssertionError, pytest.fail.Exception)
"""How a promise fails: by an assertion, or by an error that did not come."""

Arguments: TypeAlias = dict[str, Any]

BROKEN_LEDGERS: dict[type[BrokenLedger], tuple[str, Arguments]] = {
    reads.IgnoresTheRunIdOfSteps: (
        "test_steps_and_tool_calls_of_one_run_are_not_among_those_of_another",
        {},
    ),
    reads.GivesTheEntriesOfTheWholeSession: (
        "test_entries_are_this_runs_steps_and_tool_calls_only",
        {},
    ),
    reads.BreaksTiesByTheSmallestId: ("test_latest_run_breaks_equal_timestamps_by_insertion_order", {}),
    reads.BreaksTiesByTheRunId: (
        "test_store_and_core_rules_agree_on_the_latest_run_and_on_the_order",
        {"seed": 0},
    ),
    reads.PagesByTheTimeAlone: ("test_run_pages_give_each_run_once_though_all_share_a_time", {}),
    writes.CommitsOnError: ("test_exception_rolls_back_and_goes_on_to_the_caller", {}),
    writes.CommitsUnasked: ("test_write_without_commit_is_rolled_back", {}),
    reads.HandsOutLiveReferences: ("test_changing_what_was_returned_changes_nothing_stored", {}),
    writes.KeepsWhatItWasGiven: ("test_changing_what_was_given_changes_nothing_stored", {}),
    writes.DoublesACase: ("test_run_has_one_case_however_often_it_is_put", {}),
    reads.LeaksARunToAnotherSession: ("test_run_of_another_session_is_not_there", {}),
    writes.ReusesIdsAfterErase: ("test_numbers_are_not_reused_after_the_newest_rows_were_erased", {}),
    writes.ErasesByPrefix: ("test_erase_leaves_other_sessions_untouched", {}),
    writes.EndsARunTwice: ("test_ended_run_cannot_end_again_and_nothing_changes", {"ended": succeeded}),
    writes.TakesStepsAfterTheEnd: ("test_ended_run_takes_no_more_steps", {"ended": succeeded}),
    reads.WritesTheCommentOverTheAnswer: (
        "test_feedback_changes_the_feedback_and_nothing_else_of_the_run",
        {},
    ),
    writes.GivesAKeyToTwo: ("test_of_many_that_claim_one_name_at_once_exactly_one_gets_none", {}),
    reads.ViewSeesLaterCommits: ("test_view_does_not_see_what_others_commit_after_its_first_read", {}),
    writes.ViewThatWrites: ("test_view_has_no_way_to_write", {}),
    writes.LowersTheActivityOfASession: ("test_use_never_lowers_last_active_at", {}),
    writes.LosesTurnsAtOnce: (
        "test_of_answered_runs_that_end_at_once_each_counts_a_message_pair",
        {},
    ),
    writes.LocksNothing: ("test_locked_latest_run_is_kept_unchanged_by_others_until_the_work_ends", {}),
    reads.ReadsAStringAsJson: ("test_tool_result_comes_back_equal_and_of_the_same_type", {}),
    reads.FoldsSessionIds: ("test_session_ids_are_compared_exactly", {}),
    reads.SearchesByPattern: ("test_session_query_has_no_special_character", {}),
    reads.CutsTimesToMilliseconds: (
        "test_times_of_a_run_come_back_exact_and_in_utc",
        {"moment": at(0)},
    ),
    reads.ExpiresALeaseThatEndsNow: ("test_lease_that_ends_now_has_not_expired", {}),
    writes.SaysItRenewedEverybodysLease: (
        "test_only_running_runs_of_the_owner_that_are_named_are_renewed",
        {},
    ),
    seals.LeavesTheChainWhereItWas: ("test_chain_follows_the_order_in_which_runs_end", {}),
    seals.TakesASealFromAnywhere: (
        "test_seal_that_does_not_continue_the_chain_is_refused_and_nothing_changes",
        {"head": ChainHead(0, None)},
    ),
    seals.SharesOneChainAmongSessions: ("test_chains_of_sessions_are_apart", {}),
    seals.LocksTheRunAndNotItsChain: ("test_run_locked_to_end_comes_with_its_sessions_chain", {}),
    seals.EndsARunWithoutItsSession: ("test_run_without_a_session_is_not_locked_to_end", {}),
    seals.ForgetsTombstones: ("test_erase_leaves_a_tombstone_that_counts_and_says_when", {}),
    seals.KeepsTheLastTombstoneOnly: ("test_session_used_anew_begins_a_new_chain", {}),
    seals.ErasesWhatIsNotIdle: ("test_erase_of_what_is_not_idle_leaves_it_as_it_is", {}),
    seals.CallsARunningSessionIdle: ("test_session_with_a_running_run_is_not_idle", {}),
    seals.LetsFeedbackChangeTheDigest: ("test_feedback_leaves_the_digest_alone", {}),
    ends.EndsWithoutTheCase: ("test_run_rated_useful_before_it_ends_has_its_case_when_it_ends", {}),
    ends.TellsNoEntries: ("test_decision_is_told_the_run_its_entries_and_the_chain", {}),
    ends.TellsTheChainAsItWasBefore: (
        "test_each_of_those_that_end_at_once_in_a_session_continues_the_one_before_it",
        {},
    ),
    ends.SealsWhatItRefuses: ("test_decision_that_is_refused_writes_nothing", {"decide": off_the_chain}),
    ends.TouchesTheSessionOfARunItLeaves: (
        "test_decision_for_nothing_writes_nothing_and_gives_the_run_as_it_stands",
        {},
    ),
    ends.FailsAllThatEndWithARefusedOne: (
        "test_end_that_is_refused_fails_alone_among_those_that_end_with_it",
        {},
    ),
}

BROKEN_CONTEXTS: dict[type[BrokenContext], tuple[str, Arguments]] = {
    contexts.DropsEveryThirdPair: ("test_pairs_are_recalled_oldest_first", {}),
    contexts.KeepsOnePairTooMany: (
        "test_pairs_past_the_window_are_forgotten_oldest_first",
        {"window": 2},
    ),
    contexts.CountsTheTimeFromTheFirstPair: (
        "test_append_counts_the_time_to_live_of_all_pairs_from_now",
        {},
    ),
    contexts.ProlongsWhenRecalled: ("test_recalling_does_not_prolong_the_memory", {}),
    contexts.WritesThePairInTwoHalves: ("test_reader_sees_a_whole_pair_or_none_of_it", {}),
    contexts.ReadsWaitsAndWritesBack: ("test_of_pairs_appended_at_once_none_is_lost", {}),
    contexts.FoldsTheCaseOfSessionIds: ("test_session_ids_are_compared_exactly", {}),
    contexts.ClearsByPrefix: ("test_clear_forgets_the_conversation_and_no_other", {}),
}


def opens_ledger(make: Callable[[], Ledger]) -> OpenLedger:
    @asynccontextmanager
    async def open_one() -> AsyncIterator[Ledger]:
        made = make()
        yield made
        await made.close()

    return open_one


def opens_context(make: Callable[[int, int, HeldClock], ContextStore]) -> OpenContext:
    @asynccontextmanager
    async def open_one(
        *, window: int = 6, ttl: int = 100, clock: HeldClock | None = None
    ) -> AsyncIterator[ContextStore]:
        made = make(window, ttl, clock or HeldClock())
        yield made
        await made.close()

    return open_one


@pytest.mark.parametrize("broken", BROKEN_LEDGERS, ids=lambda broken: broken.__name__)
def test_broken_ledger_is_caught_by_the_promise_that_it_breaks(broken: type[BrokenLedger]) -> None:
    name, arguments = BROKEN_LEDGERS[broken]
    promise = getattr(LedgerContract(), name)
    promise(open_ledger=opens_ledger(MemoryLedger), **arguments)
    with pytest.raises(CAUGHT):
        promise(open_ledger=opens_ledger(broken), **arguments)


@pytest.mark.parametrize("broken", BROKEN_LEDGERS, ids=lambda broken: broken.__name__)
def test_broken_ledger_is_sound_in_all_that_is_beside_the_point(broken: type[BrokenLedger]) -> None:
    for name in (
        "test_ensured_session_is_read_back_equal",
        "test_run_page_holds_at_most_limit",
        "test_case_query_finds_question_or_answer",
        "test_check_returns_when_the_ledger_is_ready",
    ):
        getattr(LedgerContract(), name)(open_ledger=opens_ledger(broken))


@pytest.mark.parametrize("broken", BROKEN_CONTEXTS, ids=lambda broken: broken.__name__)
def test_broken_context_is_caught_by_the_promise_that_it_breaks(broken: type[BrokenContext]) -> None:
    name, arguments = BROKEN_CONTEXTS[broken]
    promise = getattr(ContextContract(), name)
    promise(open_context=opens_context(MemoryContextStore), **arguments)
    with pytest.raises(CAUGHT):
        promise(open_context=opens_context(broken), **arguments)


@pytest.mark.parametrize("broken", BROKEN_CONTEXTS, ids=lambda broken: broken.__name__)
def test_broken_context_is_sound_in_all_that_is_beside_the_point(broken: type[BrokenContext]) -> None:
    for name in ("test_unknown_conversation_is_empty", "test_ping_returns_when_the_store_answers"):
        getattr(ContextContract(), name)(open_context=opens_context(broken))
