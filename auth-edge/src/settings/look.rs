//! Settings of how the edge's own pages look.

use std::path::PathBuf;

use chassis::files;
use chassis::settings::Reader;

use super::read::file;
use crate::http::pages::look::{LOGO, Look, LookError, LookSettings, STYLESHEET};

pub(super) fn read(reader: &mut Reader<'_>) -> LookSettings {
    let (stylesheet, logo) = (file(reader, STYLESHEET), file(reader, LOGO));
    let mut content = |setting, path: &Option<PathBuf>| {
        let read = files::read_bounded(path.as_ref()?).map_err(LookError::from);
        read.map_err(|error| reader.wrong(setting, error.to_string()))
            .ok()
    };
    let (style, picture) = (content(STYLESHEET, &stylesheet), content(LOGO, &logo));
    let look = Look::parse(style.as_deref(), picture.as_deref()).unwrap_or_else(|wrong| {
        for (setting, error) in wrong {
            reader.wrong(setting, error.to_string());
        }
        Look::default()
    });
    LookSettings {
        stylesheet,
        logo,
        look,
    }
}
