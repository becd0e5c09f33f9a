//! The setting for the look of the edge's own pages.

use chassis::settings::Reader;

use crate::http::pages::look::{Look, PAGES_DIR};

pub(super) fn read(reader: &mut Reader<'_>) -> Look {
    let Some(folder) = reader.path(PAGES_DIR) else {
        return Look::default();
    };
    Look::read(&folder).unwrap_or_else(|wrong| {
        for (file, error) in wrong {
            reader.wrong(PAGES_DIR, format!("{file} {error}"));
        }
        Look::default()
    })
}
