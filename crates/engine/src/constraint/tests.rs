//! What is refused before anything runs. That replies follow what they have to is tested in
//! `schedule`, over a session.

use super::*;
use crate::request::{GenerateOptions, GenerateRequest, RequestError};
use crate::testing::{LETTERS, live, options};

/// Why a request with this constraint is none.
fn refusal(constraint: Constraint) -> Option<ConstraintError> {
    let script = candor_testkit::scripted::Script::new(LETTERS);
    let live = live(&script, 64, 1);
    let options = GenerateOptions {
        constraint: Some(constraint),
        ..options(vec![LETTERS.start], 8)
    };
    let request = GenerateRequest::new(&live.info, options, crate::CancelToken::new());
    assert_eq!(script.counts().submitted, 0, "nothing ran");
    match request {
        Ok(_) => None,
        Err(RequestError::Constraint(error)) => Some(error),
        Err(other) => panic!("{other:?}"),
    }
}

/// A schema of lists of lists.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({"items": inner}))
}

#[test]
fn what_cannot_be_followed_is_refused_before_anything_runs() {
    let lark = |text: &str| Constraint::Lark(text.to_owned());
    let regex = |text: &str| Constraint::Regex(text.to_owned());
    let long = "a".repeat(CONSTRAINT_BYTES_MAX + 1);
    let cases = [
        (
            Constraint::JsonSchema(json!({"type": "nonsense"})),
            "JSON schema",
        ),
        (Constraint::JsonSchema(json!({"type": 3})), "JSON schema"),
        (Constraint::JsonSchema(json!(false)), "JSON schema"),
        (Constraint::JsonSchema(json!([1, 2])), "JSON schema"),
        (
            Constraint::JsonSchema(json!({"$ref": "#/$defs/missing"})),
            "JSON schema",
        ),
        // Nothing but itself: it has no beginning.
        (Constraint::JsonSchema(json!({"$ref": "#"})), "JSON schema"),
        (regex("(unclosed"), "regular expression"),
        (lark("start: nothing_of_that_name"), "grammar"),
        (lark("no start at all"), "grammar"),
        (lark(""), "grammar"),
    ];
    for (constraint, kind) in cases {
        match refusal(constraint.clone()) {
            Some(ConstraintError::Refused { what, reason }) => {
                assert_eq!(what, kind, "{constraint:?}");
                assert!(!reason.is_empty());
                let is_tidy = !reason.contains('\n') && !reason.contains(LEFT_OUT);
                assert!(is_tidy, "{reason}");
            }
            other => panic!("{constraint:?}: {other:?}"),
        }
    }
    for constraint in [
        regex(&long),
        lark(&long),
        Constraint::JsonSchema(json!({"const": long})),
    ] {
        assert!(matches!(
            refusal(constraint),
            Some(ConstraintError::TooLong { .. })
        ));
    }
    let deep = Constraint::JsonSchema(nested(SCHEMA_DEPTH_MAX + 1));
    let too_deep = |what, max| Some(ConstraintError::TooDeep { what, max });
    assert_eq!(refusal(deep), too_deep("JSON schema", SCHEMA_DEPTH_MAX));
    let open = |levels: usize| ["(".repeat(levels), "a".into(), ")".repeat(levels)].concat();
    let levels = BRACKETS_DEPTH_MAX + 1;
    let grammar = lark(&format!("start: {}", open(levels)));
    assert_eq!(refusal(grammar), too_deep("grammar", BRACKETS_DEPTH_MAX));
    let deep = regex(&open(levels));
    assert_eq!(
        refusal(deep),
        too_deep("regular expression", BRACKETS_DEPTH_MAX)
    );
    assert_eq!(refusal(regex(&open(BRACKETS_DEPTH_MAX))), None);
    let quoted = lark(&format!("start: \"{}\"", "(".repeat(1_000)));
    assert_eq!(refusal(quoted), None, "what is quoted opens nothing");
    assert_eq!(
        refusal(Constraint::JsonSchema(nested(SCHEMA_DEPTH_MAX))),
        None
    );
    assert_eq!(refusal(Constraint::JsonSchema(json!(true))), None);
    assert_eq!(refusal(Constraint::JsonObject), None);
}

#[test]
fn what_a_schema_says_of_blanks_counts_for_nothing() {
    let schema = json!({"type": "object", "x-guidance": {"whitespace_flexible": true}});
    let compact = compact(schema);
    assert_eq!(compact["x-guidance"]["whitespace_flexible"], json!(false));
}

#[test]
fn objects_are_closed_where_they_name_fields_and_say_nothing_of_others() {
    let open = json!({"properties": {"n": {"type": "integer"}}});
    let shut = json!({"properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let cases = [
        (open.clone(), shut.clone()),
        (shut.clone(), shut.clone()),
        (json!({"type": "object"}), json!({"type": "object"})),
        (json!(true), json!(true)),
        (json!({"items": open}), json!({"items": shut})),
        (json!({"anyOf": [open, 3]}), json!({"anyOf": [shut, 3]})),
        (json!({"$defs": {"a": open}}), json!({"$defs": {"a": shut}})),
        (
            json!({"properties": {"properties": open}}),
            json!({"properties": {"properties": shut}, "additionalProperties": false}),
        ),
        // A field of that name is no schema's word.
        (json!({"enum": [open]}), json!({"enum": [open]})),
        // Each would forbid the other's.
        (
            json!({"allOf": [open, open]}),
            json!({"allOf": [open, open]}),
        ),
        (
            json!({"properties": {}, "allOf": [open]}),
            json!({"properties": {}, "allOf": [open]}),
        ),
        (
            json!({"properties": {}, "additionalProperties": open}),
            json!({"properties": {}, "additionalProperties": shut}),
        ),
        (
            json!({"properties": {}, "patternProperties": {"^a": true}}),
            json!({"properties": {}, "patternProperties": {"^a": true}}),
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(closed(schema.clone()), expected, "{schema}");
    }
}
