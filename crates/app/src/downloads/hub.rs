//! What a hub has: searching it, and listing the model files of one place.
//!
//! Facts of the interface are those of Hugging Face's public API: `/api/models` with `search` and
//! `filter`, `/api/models/<repo>?blobs=true` with the size and, for large files, the SHA-256 of
//! each, and `/<repo>/resolve/<revision>/<path>` for the files themselves.

use std::collections::BTreeMap;

use candor_modelfile::gguf::split::PartName;
use candor_modelfile::limits::SPLIT_PARTS_MAX;
use serde_json::Value;

use super::fault::Fault;
use super::http::Client;
use crate::wire::HubModel;

/// Where models are searched if the user names no other place.
pub(super) const HUGGING_FACE: &str = "https://huggingface.co";
/// As many as a person looks through before searching more narrowly.
const FOUND_MAX: usize = 40;
/// Longest words that are searched for, in characters.
const QUERY_CHARS_MAX: usize = 200;
/// Longest name of a place or a file, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Most folders that a file lies in.
const FOLDERS_MAX: usize = 8;
/// How the name of a model file ends here.
const ENDING: &str = ".gguf";
/// Parts of a model that sees or hears, which cannot be opened alone.
const COMPANION: &str = "mmproj";

/// A file of a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Blob {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) sha256: Option<String>,
}

/// A model of a place: one file, or all parts of a split one, in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    pub(super) parts: Vec<Blob>,
}

impl Offer {
    pub(super) fn size(&self) -> u64 {
        self.parts
            .iter()
            .fold(0, |sum, part| sum.saturating_add(part.size))
    }

    pub(super) fn path(&self) -> &str {
        self.parts.first().map_or("", |part| &part.path)
    }
}

/// The models of a place, and the revision that they belong to.
pub(super) struct Listing {
    pub(super) revision: String,
    pub(super) offers: Vec<Offer>,
}

/// The address of a hub without the stroke at its end; `http` and `https` only.
pub(super) fn address(chosen: &str) -> Result<String, Fault> {
    let chosen = chosen.trim().trim_end_matches('/');
    match chosen {
        "" => Ok(String::from(HUGGING_FACE)),
        known if known.starts_with("https://") || known.starts_with("http://") => {
            Ok(String::from(known))
        }
        bare if !bare.contains("://") => Ok(format!("https://{bare}")),
        _ => Err(Fault::NotUnderstood),
    }
}

/// Places that have model files, most downloaded first.
pub(super) fn search(client: &Client, hub: &str, words: &str) -> Result<Vec<HubModel>, Fault> {
    let words: String = words.trim().chars().take(QUERY_CHARS_MAX).collect();
    let url = format!(
        "{hub}/api/models?search={}&filter=gguf&sort=downloads&direction=-1&limit={FOUND_MAX}",
        encoded(&words, Stroke::Encoded)
    );
    let page = client.page(&url)?;
    let list = page.as_array().ok_or(Fault::NotUnderstood)?;
    Ok(list.iter().filter_map(model).take(FOUND_MAX).collect())
}

fn model(found: &Value) -> Option<HubModel> {
    let repo = found.get("id").or_else(|| found.get("modelId"))?.as_str()?;
    let number = |name: &str| found.get(name).and_then(Value::as_f64);
    let gated = found.get("gated").is_some_and(|gated| match gated {
        Value::Bool(is_gated) => *is_gated,
        other => other.is_string(),
    });
    let updated = found.get("lastModified").and_then(Value::as_str);
    is_repo(repo).then(|| HubModel {
        repo: String::from(repo),
        downloads: number("downloads"),
        likes: number("likes"),
        // The day of a time in the form 2026-12-01T03:55:00.000Z.
        updated: updated.unwrap_or_default().chars().take(10).collect(),
        gated,
    })
}

/// The model files of a place, smallest first.
pub(super) fn list(client: &Client, hub: &str, repo: &str) -> Result<Listing, Fault> {
    if !is_repo(repo) {
        return Err(Fault::Gone);
    }
    let page = client.page(&format!("{hub}/api/models/{repo}?blobs=true"))?;
    let files = page.get("siblings").and_then(Value::as_array);
    let blobs = files.ok_or(Fault::NotUnderstood)?.iter().filter_map(blob);
    let revision = page.get("sha").and_then(Value::as_str);
    let is_revision = |mark: &&str| mark.bytes().all(|byte| byte.is_ascii_alphanumeric());
    Ok(Listing {
        revision: String::from(revision.filter(is_revision).unwrap_or("main")),
        offers: offers(blobs.collect()),
    })
}

fn blob(file: &Value) -> Option<Blob> {
    let path = file.get("rfilename")?.as_str()?;
    let lfs = file.get("lfs");
    let in_lfs = |name: &str| lfs.and_then(|lfs| lfs.get(name));
    let size = file.get("size").or_else(|| in_lfs("size"))?.as_u64()?;
    let sha256 = in_lfs("sha256").or_else(|| in_lfs("oid"));
    let sha256 = sha256.and_then(Value::as_str).filter(|hash| {
        // Anything else is the hash of something else.
        hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    let is_model = path.to_ascii_lowercase().ends_with(ENDING);
    let is_companion = name_of(path).to_ascii_lowercase().contains(COMPANION);
    (is_model && !is_companion && size > 0 && is_path(path)).then(|| Blob {
        path: String::from(path),
        size,
        sha256: sha256.map(String::from),
    })
}

/// Joins the parts of split models; one of which a part is missing is left out.
fn offers(blobs: Vec<Blob>) -> Vec<Offer> {
    let mut whole: BTreeMap<String, BTreeMap<u64, Blob>> = BTreeMap::new();
    let mut offers = Vec::new();
    for blob in blobs {
        match PartName::of(name_of(&blob.path)) {
            Some(part) if part.parts <= SPLIT_PARTS_MAX => {
                let folder = &blob.path[..blob.path.len() - name_of(&blob.path).len()];
                let first = format!("{folder}{}", part.file_name(1));
                whole.entry(first).or_default().insert(part.part, blob);
            }
            Some(_) => {}
            None => offers.push(Offer { parts: vec![blob] }),
        }
    }
    for (first, parts) in whole {
        let named = PartName::of(name_of(&first)).map_or(0, |part| part.parts);
        // Each number is there once and none is above what the names say.
        if parts.len() as u64 == named {
            let parts = parts.into_values().collect();
            offers.push(Offer { parts });
        }
    }
    offers.sort_by_key(|offer| (offer.size(), String::from(offer.path())));
    offers
}

/// The address of a file.
pub(super) fn file_url(hub: &str, repo: &str, revision: &str, path: &str) -> String {
    let path = encoded(path, Stroke::Kept);
    format!("{hub}/{repo}/resolve/{revision}/{path}")
}

/// "owner/name", of the characters that the hub allows.
pub(super) fn is_repo(repo: &str) -> bool {
    let is_name = |name: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && !name.starts_with('.')
            && name.bytes().all(allowed)
    };
    repo.split_once('/')
        .is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

/// A path that stays below where it is put, on every system.
pub(super) fn is_path(path: &str) -> bool {
    let is_name = |name: &str| {
        let is_safe = |c: char| !c.is_control() && !"\\:*?\"<>|".contains(c);
        !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && !name.starts_with('.')
            && name.chars().all(is_safe)
    };
    path.split('/').count() <= FOLDERS_MAX && path.split('/').all(is_name)
}

pub(super) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[derive(Clone, Copy, PartialEq)]
enum Stroke {
    Kept,
    Encoded,
}

/// As RFC 3986 has it in paths and queries.
fn encoded(text: &str, stroke: Stroke) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut url, byte| {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        if is_plain || (byte == b'/' && stroke == Stroke::Kept) {
            url.push(char::from(byte));
        } else {
            // Writing into a string cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
        url
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_would_lead_elsewhere_are_left_out() {
        for (path, want) in [
            ("m.gguf", true),
            ("Q4 (new)/m é.gguf", true),
            ("../m.gguf", false),
            ("/m.gguf", false),
            ("a//m.gguf", false),
            ("a/./m.gguf", false),
            (".hidden/m.gguf", false),
            ("a\\m.gguf", false),
            ("a\n.gguf", false),
            ("1/2/3/4/5/6/7/8/m.gguf", false),
        ] {
            assert_eq!(is_path(path), want, "{path}");
        }
        for (repo, want) in [
            ("bartowski/Qwen2.5-7B_GGUF", true),
            ("a", false),
            ("a/b/c", false),
            ("../b", false),
            ("a/..", false),
            ("a/b?x=1", false),
            ("a/é", false),
        ] {
            assert_eq!(is_repo(repo), want, "{repo}");
        }
    }

    #[test]
    fn addresses_and_files_become_urls() {
        for (chosen, want) in [
            ("", Some("https://huggingface.co")),
            (" https://hf.example/ ", Some("https://hf.example")),
            ("mirror.example", Some("https://mirror.example")),
            ("http://10.0.0.1:8080/hf", Some("http://10.0.0.1:8080/hf")),
            ("file:///etc", None),
        ] {
            assert_eq!(address(chosen).ok().as_deref(), want, "{chosen}");
        }
        let url = file_url("https://h", "a/b", "main", "Q4 #1/m%é.gguf");
        assert_eq!(url, "https://h/a/b/resolve/main/Q4%20%231/m%25%C3%A9.gguf");
    }

    #[test]
    fn models_are_offered_whole_and_smallest_first() {
        let hash = "ab".repeat(32);
        let file = |name: &str, size: u64| json!({ "rfilename": name, "size": size });
        let files = [
            file("README.md", 10),
            file("big.gguf", 900),
            json!({ "rfilename": "small.GGUF", "size": 100, "lfs": { "sha256": hash, "size": 100 } }),
            file("mmproj-model.gguf", 5),
            file("Q8/m-00002-of-00002.gguf", 300),
            file("Q8/m-00001-of-00002.gguf", 300),
            file("m-00001-of-00003.gguf", 1),
            file("empty.gguf", 0),
            json!({ "rfilename": "unsized.gguf" }),
            json!({ "rfilename": "../out.gguf", "size": 7 }),
            json!({ "rfilename": 7, "size": 7 }),
        ];
        let offers = offers(files.iter().filter_map(blob).collect());
        let told: Vec<_> = offers
            .iter()
            .map(|offer| (offer.path(), offer.parts.len(), offer.size()))
            .collect();
        let want = [
            ("small.GGUF", 1, 100),
            ("Q8/m-00001-of-00002.gguf", 2, 600),
            ("big.gguf", 1, 900),
        ];
        assert_eq!(told, want);
        assert_eq!(offers[0].parts[0].sha256.as_deref(), Some(hash.as_str()));
        assert_eq!(offers[2].parts[0].sha256, None);
    }
}
