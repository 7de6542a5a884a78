//! Models by name: listed, loaded on request, refused with reasons, and given back when idle.

use std::time::Duration;

use candor_testkit::scripted::Fault;
use candor_testkit::{Damage, TinyModel};
use serde_json::json;

use super::desk::{Desk, Plan, chat, wait_until};

#[test]
fn a_model_has_one_name_everywhere() {
    let desk = Desk::new();
    let names = |path: &str, list: &str| -> Vec<String> {
        let json = desk.get(path).json();
        let models = json[list].as_array().unwrap();
        let name = |model: &serde_json::Value| {
            model
                .get("id")
                .or(model.get("name"))
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        models.iter().map(name).collect()
    };
    assert_eq!(names("/v1/models", "data"), ["tiny"]);
    assert_eq!(names("/api/tags", "models"), ["tiny"]);
    assert_eq!(names("/api/ps", "models"), ["tiny"]);
    assert_eq!(desk.get("/v1/models/tiny").status, 200);
    assert_eq!(desk.get("/v1/models/other").status, 404);
    for name in ["tiny", "Tiny", "tiny:latest", "Tiny.gguf", ""] {
        let mut body = chat("Hello", 1);
        body["model"] = json!(name);
        let answer = desk.post("/v1/chat/completions", &body).answer();
        assert_eq!(answer.status, 200, "{name:?}: {}", answer.text());
        assert_eq!(answer.json()["model"], json!("tiny"), "{name:?}");
    }
    let mut body = chat("Hello", 1);
    body["model"] = json!("gpt-4o");
    let answer = desk.post("/v1/chat/completions", &body).answer();
    assert_eq!(answer.status, 404);
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["code"], &error["param"]),
        (&json!("model_not_found"), &json!("model"))
    );
    assert!(
        error["message"].as_str().unwrap().contains("`tiny`"),
        "{error}"
    );
}

#[test]
fn a_model_is_loaded_when_it_is_asked_for() {
    let desk = Desk::with(Plan {
        loads: false,
        ..Plan::default()
    });
    TinyModel::llama()
        .seed(9)
        .context(8_192)
        .write(&desk.dir.path().join("other.gguf"))
        .unwrap();
    assert_eq!(desk.get("/api/ps").json(), json!({ "models": [] }));
    // What it can is known before it is loaded: clients choose by that.
    let shown = desk.post("/api/show", &json!({ "model": "other" }));
    let shown = shown.answer().json();
    assert_eq!(shown["details"]["family"], json!("llama"), "{shown}");
    assert_eq!(shown["model_info"]["llama.context_length"], json!(8_192));
    assert!(!shown["template"].as_str().unwrap().is_empty(), "{shown}");
    assert!(shown["details"]["parameter_size"] != json!(""), "{shown}");
    let tags = desk.get("/api/tags").json();
    let other = tags["models"].as_array().unwrap().iter();
    let other = other.clone().find(|tag| tag["name"] == json!("other"));
    let other = other.unwrap_or_else(|| panic!("{tags}"));
    assert_eq!(other["details"], shown["details"], "{tags}");
    // Clients show its first twelve digits.
    let digits = |tag: &serde_json::Value| tag["digest"].as_str().unwrap().len();
    assert!(
        tags["models"]
            .as_array()
            .unwrap()
            .iter()
            .all(|tag| digits(tag) == 64)
    );
    assert_ne!(tags["models"][0]["digest"], tags["models"][1]["digest"]);
    assert_eq!(desk.script.counts().weights_alive, 0);
    let mut body = chat("Hello", 2);
    body.as_object_mut().unwrap().remove("model");
    let nameless = desk.post("/v1/chat/completions", &body).answer();
    // Asking again would be told the same.
    assert_eq!(nameless.status, 400);
    assert_eq!(nameless.json()["error"]["param"], json!("model"));
    assert_eq!(nameless.header("x-should-retry"), Some("false"));
    for name in ["tiny", "other", "tiny"] {
        body["model"] = json!(name);
        let answer = desk.post("/v1/chat/completions", &body).answer();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["model"], json!(name));
        assert_eq!(desk.get("/api/ps").json()["models"][0]["name"], json!(name));
        assert_eq!(desk.script.counts().weights_alive, 1);
    }
    // Nothing but a name: loads, and unloads again.
    let loads = desk
        .post("/api/generate", &json!({ "model": "other" }))
        .answer()
        .json();
    assert_eq!(
        (&loads["done_reason"], &loads["model"]),
        (&json!("load"), &json!("other"))
    );
    let unload = json!({ "model": "other", "keep_alive": 0 });
    let unloads = desk.post("/api/generate", &unload).answer().json();
    assert_eq!(unloads["done_reason"], json!("unload"));
    wait_until("the memory is given back", || {
        desk.script.counts().weights_alive == 0
    });
}

#[test]
fn damaged_files_are_refused_in_words_and_the_model_before_stays() {
    let desk = Desk::new();
    for damage in Damage::ALL {
        let file = damage.write(desk.dir.path(), &TinyModel::llama()).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        for path in ["/v1/chat/completions", "/api/chat", "/v1/messages"] {
            let body = json!({
                "model": name, "max_tokens": 1,
                "messages": [{ "role": "user", "content": "Hello" }],
            });
            let answer = desk.post(path, &body).answer();
            // A folder is no model, whatever it is called.
            let want = if damage == Damage::Directory {
                404
            } else {
                500
            };
            assert_eq!(answer.status, want, "{name}: {}", answer.text());
            let error = &answer.json()["error"];
            let words = error.as_str().or(error["message"].as_str()).unwrap();
            assert!(words.contains(name), "{name}: {words}");
            if matches!(damage, Damage::CutAt60Percent | Damage::OneByteShort) {
                assert!(words.contains("incomplete download"), "{name}: {words}");
            }
        }
    }
    assert_eq!(desk.script.counts().submitted, 0);
    assert_eq!(
        desk.get("/api/ps").json()["models"][0]["name"],
        json!("tiny")
    );
    desk.chat("Hello", 2);
}

#[test]
fn an_idle_model_gives_its_memory_back_and_comes_again() {
    let desk = Desk::with(Plan {
        unload_after: Some(Duration::from_millis(100)),
        ..Plan::default()
    });
    let before = desk.chat("Hello", 6);
    wait_until("the memory is given back", || {
        desk.script.counts().weights_alive == 0
    });
    assert_eq!(desk.get("/api/ps").json(), json!({ "models": [] }));
    assert_eq!(desk.chat("Hello", 6), before);
    let mut body = chat("Hello", 1);
    body.as_object_mut().unwrap().remove("model");
    wait_until("the memory is given back", || {
        desk.script.counts().weights_alive == 0
    });
    assert_eq!(
        desk.post("/v1/chat/completions", &body).answer().status,
        200
    );
}

#[test]
fn a_model_is_kept_no_longer_than_a_client_says() {
    let body = |keep: serde_json::Value| {
        json!({
            "model": "tiny", "prompt": "Hello", "stream": false, "keep_alive": keep,
            "options": { "temperature": 0, "num_predict": 4 },
        })
    };
    let given_back = |desk: &Desk| desk.script.counts().weights_alive == 0;
    for streams in [false, true] {
        let desk = Desk::new();
        for keep in [json!("5m"), json!(300), json!(-1), json!("-1s")] {
            let answer = desk.post("/api/generate", &body(keep)).answer();
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let mut last = body(json!(0));
        last["stream"] = json!(streams);
        assert_eq!(desk.post("/api/generate", &last).answer().status, 200);
        wait_until("the memory is given back", || given_back(&desk));
        // It comes again, and stays.
        assert_eq!(desk.chat("Hello", 2).chars().count(), 2);
        assert!(!given_back(&desk));
        // The same for vectors.
        let embed = json!({ "model": "tiny", "input": "a bird", "keep_alive": 0 });
        assert_eq!(desk.post("/api/embed", &embed).answer().status, 200);
        wait_until("the memory is given back", || given_back(&desk));
    }
    let desk = Desk::new();
    for keep in [json!("banana"), json!([1]), json!(true)] {
        let answer = desk.post("/api/generate", &body(keep)).answer();
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let unload = |name: &str| {
        let body = json!({ "model": name, "keep_alive": 0 });
        desk.post("/api/generate", &body).answer()
    };
    assert_eq!(unload("nobody").status, 404);
    assert_eq!(unload("").status, 400);
    // One that is there, but not loaded, has no memory to give back; the one that answers keeps its.
    let other = desk.dir.path().join("other.gguf");
    TinyModel::llama().seed(9).write(&other).unwrap();
    assert_eq!(unload("other").json()["done_reason"], json!("unload"));
    assert!(!given_back(&desk));
    assert_eq!(
        desk.get("/api/ps").json()["models"][0]["name"],
        json!("tiny")
    );
    // Whoever is inside is not cut off; the last who leaves gives it back.
    desk.script.at_forward(0, Fault::Stall);
    let inside = desk.post("/v1/chat/completions", &chat("Hello", 3));
    desk.script.wait_until_stalled();
    assert_eq!(unload("tiny").json()["done_reason"], json!("unload"));
    assert!(!given_back(&desk));
    desk.script.release();
    assert_eq!(inside.answer().status, 200);
    wait_until("the memory is given back", || given_back(&desk));
}
