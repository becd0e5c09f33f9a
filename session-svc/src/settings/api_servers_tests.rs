use std::path::Path;

use super::*;

const CHAT: &str =
    "[[server]]\naudience = \"chat\"\nissuer = \"https://auth.chat.example\"\nclient_id = \"vestibule\"\n";

fn mistakes(text: &str) -> Vec<(usize, String)> {
    let context = FileContext {
        providers: vec!["https://id.example".to_owned()],
        proxy: None,
    };
    let read = parse(text, &context).err();
    let all = read.iter().flat_map(|mistakes| mistakes.iter());
    all.map(|mistake| (mistake.line, mistake.text.clone())).collect()
}

fn secret(folder: &Path, text: &str) -> String {
    let path = folder.join("secret");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_server_is_read_with_what_routes_may_leave_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = secret(folder.path(), "a long secret\n");
    let text = format!(
        "{CHAT}client_secret_file = \"{path}\"\nresource = \"https://api.chat.example\"\nscope = \"chat.read\"\n"
    );
    let list = parse(&text, &FileContext::default()).unwrap();
    let server = &list.servers[0];
    assert_eq!(
        (server.audience.as_str(), server.issuer()),
        ("chat", "https://auth.chat.example")
    );
    assert_eq!(
        (server.resource.as_str(), server.scope.as_str()),
        ("https://api.chat.example", "chat.read")
    );
    assert!(
        matches!(server.client.credentials().auth, ClientAuth::SecretByMetadata(secret) if secret.secret() == "a long secret")
    );
    assert_eq!(list.files, [PathBuf::from(path)]);
}

#[test]
fn the_client_authentication_follows_from_the_file_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = secret(folder.path(), "a long secret");
    let (with_secret, with_key) = (
        format!("client_secret_file = \"{path}\""),
        format!("client_key_file = \"{path}\""),
    );
    for (rest, expected) in [
        (with_secret.clone(), Ok("client_secret_basic")),
        (
            format!("{with_secret}\nclient_auth = \"client_secret_post\""),
            Ok("client_secret_post"),
        ),
        ("client_auth = \"none\"".to_owned(), Ok("none")),
        (String::new(), Err("the server needs client_secret_file")),
        (
            format!("{with_secret}\n{with_key}"),
            Err("the server needs client_secret_file"),
        ),
        (
            format!("{with_secret}\nclient_auth = \"none\""),
            Err("the server needs client_secret_file"),
        ),
        (with_key, Err("must hold a PEM private key")),
    ] {
        let text = format!("{CHAT}{rest}\n");
        let read = parse(&text, &FileContext::default());
        match expected {
            Ok(method) => assert_eq!(
                read.unwrap().servers[0].client.credentials().auth.method(),
                method
            ),
            Err(wrong) => assert!(read.err().unwrap().to_string().contains(wrong), "{rest}"),
        }
    }
}

#[test]
fn every_mistake_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = secret(folder.path(), "short");
    let text = format!(
        "[[server]]\naudience = \"chat\"\nissuer = \"http://auth.chat.example\"\nclient_id = \"\"\nclient_secret_file = \"{path}\"\nresource = \"chat\"\nscopes = \"a\"\n"
    );
    let lines: Vec<usize> = mistakes(&text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7]);
    let none = "client_auth = \"none\"\n";
    let twice = format!("{CHAT}{none}{CHAT}{none}");
    let texts: Vec<String> = mistakes(&twice).into_iter().map(|(_, text)| text).collect();
    assert!(
        texts[0].contains("audience \"chat\" appears twice") && texts[1].contains("issuer"),
        "{texts:?}"
    );
    let of_provider = format!("{CHAT}{none}").replace("auth.chat.example", "id.example");
    assert!(mistakes(&of_provider)[0].1.contains("is a provider"));
    assert!(mistakes("")[0].1.contains("there is no [[server]]"));
}

/// The next token uses the new file: the client of a replaced server is no longer asked.
#[tokio::test(start_paused = true)]
async fn a_changed_file_and_a_changed_secret_take_effect_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let secret_path = secret(folder.path(), "the first secret");
    let path = folder.path().join("servers.toml");
    let none = format!("{CHAT}client_auth = \"none\"\n");
    std::fs::write(&path, &none).unwrap();
    let servers = ApiServers::new(parse(&none, &FileContext::default()).unwrap());
    servers.follow(path.clone(), |text| parse(text, &FileContext::default()));
    let method = |servers: &ApiServers| {
        let server = servers.named("chat").unwrap();
        server.client.credentials().auth
    };
    let reaches = async |secret: &str| {
        for _ in 0..100 {
            if matches!(method(&servers), ClientAuth::SecretByMetadata(now) if now.secret() == secret) {
                return true;
            }
            tokio::time::sleep(chassis::files::POLL_INTERVAL).await;
        }
        false
    };
    std::fs::write(&path, format!("{CHAT}client_secret_file = \"{secret_path}\"\n")).unwrap();
    assert!(reaches("the first secret").await);
    std::fs::write(&secret_path, "the second secret").unwrap();
    assert!(reaches("the second secret").await);
    std::fs::write(&path, "[[server]]\n").unwrap();
    tokio::time::sleep(chassis::files::POLL_INTERVAL * 3).await;
    assert!(
        reaches("the second secret").await,
        "a file with a mistake changes nothing"
    );
}
