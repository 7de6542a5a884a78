//! Which test holds which promise about stopping, so that none of them goes missing: every row of
//! the contract of cancellation that this program set out to keep, every hole that was known, and
//! what users of other programs reported that a client of the server can see.
//! The tests themselves count forwards and tokens; this one only sees to it that they are there.

use std::fs;
use std::path::Path;

const HTTP: &str = "crates/server/tests/http/cancel.rs";
const SCHEDULE: &str = "crates/engine/src/schedule/tests/stop.rs";
const REAL: &str = "crates/engine/src/schedule/tests/real.rs";

/// What is promised, and the tests that hold it.
const ROWS: &[(&str, &[(&str, &str)])] = &[
    (
        "001: so many tokens as were written before the stop, a beginning of the whole reply",
        &[
            (
                SCHEDULE,
                "a_stop_ends_the_reply_with_the_forward_it_comes_in",
            ),
            (
                HTTP,
                "a_stream_that_is_left_has_sent_a_beginning_of_the_whole",
            ),
        ],
    ),
    (
        "002: stopped before the start, nothing is computed",
        &[
            (
                SCHEDULE,
                "a_request_that_is_stopped_while_it_waits_is_never_started",
            ),
            (HTTP, "a_queued_request_that_left_is_never_started"),
        ],
    ),
    (
        "003: the same on quantized models as they are",
        &[(REAL, "after_a_stop_the_next_reply_equals_a_fresh_one")],
    ),
    (
        "004: a client that leaves ends a long reply early",
        &[(
            HTTP,
            "a_client_that_leaves_stops_every_path_at_that_very_token",
        )],
    ),
    (
        "005: every request has a stop of its own, which does nothing after the end",
        &[
            (
                SCHEDULE,
                "a_second_stop_and_a_stop_after_the_end_do_nothing",
            ),
            (SCHEDULE, "one_stop_touches_no_other_request"),
            (HTTP, "one_that_leaves_touches_no_other"),
        ],
    ),
    (
        "006: whoever stays gets the same reply as without all this",
        &[(
            "crates/server/tests/http/queue.rs",
            "each_of_many_gets_its_own_reply",
        )],
    ),
    (
        "007: a reply that has ended by itself is not stopped",
        &[(
            SCHEDULE,
            "a_stop_in_the_step_of_the_natural_end_leaves_one_end",
        )],
    ),
    (
        "008: one stream that is left counts once, one that is read not at all",
        &[(
            HTTP,
            "a_client_that_leaves_stops_every_path_at_that_very_token",
        )],
    ),
    (
        "009 and 010: through the engine's thread no forward more than tokens",
        &[(
            "crates/engine/src/tests/turns.rs",
            "a_stop_through_the_handle_ends_a_forward_that_runs",
        )],
    ),
    (
        "011: every path that writes hands on its own stop",
        &[(
            HTTP,
            "a_client_that_leaves_stops_every_path_at_that_very_token",
        )],
    ),
    (
        "hole: a prompt that is read",
        &[(
            HTTP,
            "a_client_that_leaves_while_its_prompt_is_read_has_no_further_chunk_read",
        )],
    ),
    (
        "hole: a model that is loaded",
        &[
            (HTTP, "a_load_ends_with_the_last_who_waits_for_it"),
            (
                "crates/engine/src/tests/load.rs",
                "a_load_can_be_stopped_at_the_start_of_every_stage",
            ),
        ],
    ),
    (
        "hole: the check of a card",
        &[(
            "crates/engine/src/guard/tests/planted.rs",
            "a_check_is_stopped_within_a_forward_that_shows_nodes",
        )],
    ),
    (
        "hole: clients that are killed, and many of them",
        &[
            (
                HTTP,
                "a_client_that_is_killed_stops_its_work_as_one_that_leaves",
            ),
            (HTTP, "fifty_clients_that_all_leave_cost_nothing"),
        ],
    ),
];

const BACKEND: &str = "crates/server/tests/http/backend.rs";
const BAD_INPUT: &str = "crates/server/tests/http/bad_input.rs";
const LOADS: &str = "crates/server/tests/http/loads.rs";
const PROTOCOLS: &str = "crates/server/tests/http/protocols.rs";

/// What users of other programs reported, by its number in the collection of such reports, and the
/// tests that hold the half of it that a client of the server sees.
const REPORTS: &[(&str, &[(&str, &str)])] = &[
    (
        "B01: damaged and false model files",
        &[(
            LOADS,
            "damaged_files_are_refused_in_words_and_the_model_before_stays",
        )],
    ),
    (
        "B05: characters that are cut between tokens",
        &[(
            PROTOCOLS,
            "characters_are_never_cut_and_every_event_is_utf8",
        )],
    ),
    (
        "B06: a stop while a model is loaded, and while a prompt is read",
        &[
            (HTTP, "a_load_ends_with_the_last_who_waits_for_it"),
            (
                HTTP,
                "a_client_that_leaves_while_its_prompt_is_read_has_no_further_chunk_read",
            ),
            (
                HTTP,
                "a_client_that_leaves_while_its_text_is_embedded_has_no_further_chunk_read",
            ),
        ],
    ),
    (
        "B07: a stop while a reply is written, and a client that is killed",
        &[
            (
                HTTP,
                "a_client_that_leaves_stops_every_path_at_that_very_token",
            ),
            (
                HTTP,
                "a_stream_that_is_left_has_sent_a_beginning_of_the_whole",
            ),
            (
                HTTP,
                "a_client_that_is_killed_stops_its_work_as_one_that_leaves",
            ),
        ],
    ),
    (
        "B10: more than the context holds",
        &[(BAD_INPUT, "what_does_not_fit_is_said_with_both_numbers")],
    ),
    (
        "B17: no card, a broken one, one without room, one that answers differently, none wanted",
        &[
            (
                BACKEND,
                "without_a_card_each_reason_is_said_in_its_own_words",
            ),
            (
                BACKEND,
                "a_card_without_room_is_passed_over_and_the_answer_says_so",
            ),
            (BACKEND, "a_card_is_named_only_where_it_computes"),
            (
                BACKEND,
                "a_card_that_breaks_in_a_reply_leaves_both_in_the_answer",
            ),
        ],
    ),
];

fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn every_promise_has_its_test() {
    for (promise, tests) in ROWS.iter().chain(REPORTS) {
        for (file, name) in *tests {
            let is_there = read(file).contains(&format!("#[test]\nfn {name}() {{"));
            assert!(is_there, "{promise}: {file} has no test {name}");
        }
    }
    // No request without a stop, not even by mistake.
    let request = read("crates/engine/src/request.rs");
    assert!(request.contains("pub(crate) cancel: CancelToken,"));
}
