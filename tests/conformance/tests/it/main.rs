//! Every clause of the store's contract on every engine, and what only the redb engine can suffer.
//!
//! The clauses are generic functions; the two macros below are the one list of engines and the
//! one list of clauses. A clause that is not listed is dead code, which does not compile here;
//! an engine that lacks one does not either.

#![deny(dead_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails, with the place where it stood")]

mod atomicity;
mod durability;
mod feed;
mod isolation;
mod lifecycle;
mod limits;
mod time;

mod crash;
mod directory;
mod group_commit;
mod hostile;
mod io_errors;

macro_rules! every_clause_on {
    ($name:ident, $engine:ty) => {
        mod $name {
            clauses! { $engine:
                atomicity::a_job_commits_all_of_its_writes
                atomicity::a_refusal_leaves_no_trace_and_the_others_commit
                atomicity::a_panic_leaves_no_trace_and_the_others_commit
                atomicity::a_job_that_swallows_a_failed_call_fails
                atomicity::a_panic_while_settling_harms_nobody
                isolation::a_job_sees_its_own_writes
                isolation::jobs_of_one_batch_see_each_other_in_order
                isolation::write_skew_is_impossible
                isolation::phantoms_are_impossible
                isolation::one_of_many_creators_wins
                isolation::compare_and_swap_loses_no_update
                isolation::scans_agree_with_a_model_over_all_layers
                isolation::a_walk_in_pages_is_the_whole_walk
                isolation::odd_spans_are_walked_or_empty
                isolation::a_query_sees_one_durable_state
                durability::a_refusal_waits_for_the_writes_of_its_batch
                durability::a_batch_without_writes_answers_at_once
                durability::a_failed_commit_leaves_no_trace
                durability::an_indeterminate_commit_is_all_or_nothing
                durability::a_crash_takes_back_nothing_that_was_acknowledged
                limits::every_limit_holds_at_its_maximum_and_refuses_one_more
                limits::a_job_over_a_limit_fails_alone
                limits::reserved_keys_are_refused
                time::numbers_grow_over_closes_and_crashes
                time::numbers_of_refusals_are_not_given_twice
                time::store_time_stands_still_while_closed
                time::store_time_ignores_jumps_of_the_wall_clock
                time::all_jobs_of_a_batch_have_one_time
                time::sleeping_until_store_time_is_never_early
                feed::changes_come_in_commit_order
                feed::a_reader_resumes_where_it_stopped
                feed::a_waiting_reader_hears_of_the_next_commit
                feed::refused_jobs_note_nothing
                feed::an_old_position_is_gone
                feed::a_young_feed_is_not_trimmed
                feed::a_position_of_another_store_is_ahead
                feed::listing_then_watching_misses_nothing
                lifecycle::what_was_written_is_there_after_a_close
                lifecycle::a_close_drains_the_queue
                lifecycle::a_closed_store_refuses
                lifecycle::a_second_open_is_refused
                lifecycle::a_newer_format_is_refused
                lifecycle::settling_may_submit
            }
        }
    };
}

macro_rules! clauses {
    ($engine:ty: $($file:ident::$clause:ident)*) => {
        $(
            #[test]
            fn $clause() {
                crate::$file::$clause::<$engine>();
            }
        )*
    };
}

every_clause_on!(mem, interlock_conformance::MemEngine);
every_clause_on!(redb, interlock_conformance::RedbEngine);
every_clause_on!(hostile_mem, interlock_conformance::HostileEngine<interlock_conformance::MemEngine>);
every_clause_on!(hostile_redb, interlock_conformance::HostileEngine<interlock_conformance::RedbEngine>);
