//! What a request has to be.

use candor_text::StopError;

use super::*;
use crate::testing::{live, options};

#[test]
fn a_request_that_the_model_cannot_serve_does_not_exist() {
    let live = live(&Script::new(LETTERS), 32, 1);
    let vocabulary = live.info.vocabulary;
    let unknown = vocabulary as u32;
    let mut hot = options(vec![1], 1);
    hot.sampling.temperature = -1.0;
    let hot_error = SamplingError {
        what: "temperature",
        found: -1.0,
        min: 0.0,
        max: 10.0,
    };
    let mut stop = options(vec![1], 1);
    stop.stop = vec![String::new()];
    let max = REPLY_TOKENS_MAX;
    let cases = [
        (options(vec![], 1), RequestError::EmptyPrompt),
        (
            options(vec![1, unknown], 1),
            RequestError::UnknownToken {
                index: 1,
                token: unknown,
                vocabulary,
            },
        ),
        (
            options(vec![1; 33], 1),
            RequestError::PromptTooLong {
                tokens: 33,
                ctx_len: 32,
            },
        ),
        (
            options(vec![1], 0),
            RequestError::MaxTokens { found: 0, max },
        ),
        (
            options(vec![1], max + 1),
            RequestError::MaxTokens {
                found: max + 1,
                max,
            },
        ),
        (hot, RequestError::Sampling(hot_error)),
        (stop, RequestError::Stop(StopError::Empty { index: 0 })),
    ];
    for (options, expected) in cases {
        let found = GenerateRequest::new(&live.info, options, CancelToken::new()).unwrap_err();
        assert_eq!(found, expected);
    }
    assert!(GenerateRequest::new(&live.info, options(vec![1; 32], 1), CancelToken::new()).is_ok());
}

#[test]
fn a_request_that_is_never_sent_ends_its_log() {
    let live = live(&Script::new(LETTERS), 32, 1);
    let (request, _, log) = request(&live.info, options(vec![1], 1));
    drop(request);
    assert!(log.has_ended());
}
