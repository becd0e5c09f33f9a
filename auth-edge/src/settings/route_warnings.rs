//! Warnings about valid route tables with likely mistakes. The edge starts; `--check-config` prints the warnings.
//!
//! Deliberately absent: a check whether an upstream answers. It may start later.

use chassis::settings::Reader;

use crate::route_table::{RouteTable, Upstream};

const ROUTES: &str = "EDGE_ROUTES";

/// Warns of missing folders.
pub(super) fn warn(reader: &mut Reader<'_>, table: &RouteTable) {
    for route in table.routes.all() {
        if let Upstream::Directory(folder) = &route.upstream
            && !folder.is_dir()
        {
            let (name, folder) = (&route.name, folder.display());
            reader.warn(
                ROUTES,
                format!(
                    "route {name:?}: the folder {folder} does not exist. Until it does, the edge answers 404"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use chassis::settings::{Reader, Source};

    use crate::settings::{SERVICE, read};

    /// The warnings of a start with this route table.
    fn warnings(table: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("dist")).unwrap();
        let file = folder.path().join("routes.toml");
        let at = folder.path().display().to_string();
        std::fs::write(&file, table.replace("FOLDER", &at)).unwrap();
        let pairs = [
            ("EDGE_BASE_URL", "https://app.example"),
            ("EDGE_SECRET", "0123456789abcdef0123456789abcdef"),
            ("EDGE_ROUTES", file.to_str().unwrap()),
            ("OIDC_ISSUER_URL", "https://op.example"),
            ("OIDC_CLIENT_ID", "client"),
            (
                "OIDC_CLIENT_SECRET",
                "a client secret of thirty-two or more characters",
            ),
        ];
        let source = Source::from_pairs(&SERVICE, &pairs);
        let mut reader = Reader::new(&source);
        let settings = read(&mut reader);
        let (_, warnings) = reader.finish(settings).unwrap();
        let shown = warnings.iter().map(ToString::to_string);
        shown.map(|warning| warning.replace(&at, "FOLDER")).collect()
    }

    const APP: &str = "[[route]]\npath = \"/*\"\nguard = \"none\"\nupstream = \"dir:FOLDER/dist\"\n";

    #[test]
    fn a_folder_that_is_not_there_gives_a_warning() {
        assert!(warnings(APP).is_empty());
        let missing = APP.replace("/dist", "/disk");
        assert_eq!(
            warnings(&missing),
            [
                "EDGE_ROUTES: route \"/*\": the folder FOLDER/disk does not exist. Until it does, the edge answers 404"
            ]
        );
        let file = APP.replace("/dist", "/routes.toml");
        assert_eq!(warnings(&file).len(), 1, "a file is no folder");
    }
}
