//! Serves the files within the program like those of a folder.

use std::borrow::Cow;
use std::future::{Ready, ready};
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File, Metadata};

use crate::values::embedded::EmbeddedFiles;

/// Opens the files within the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmbeddedBackend(pub(super) EmbeddedFiles);

impl EmbeddedBackend {
    fn find(self, path: &Path) -> io::Result<EmbeddedFile> {
        // `ServeDir` names files from `.` on.
        let path = path.strip_prefix(".").unwrap_or(path);
        let content = path.to_str().and_then(|path| self.0.find(path));
        let content = content.ok_or(io::ErrorKind::NotFound)?;
        Ok(EmbeddedFile(Cursor::new(content)))
    }
}

/// One open file.
#[derive(Debug)]
pub(super) struct EmbeddedFile(Cursor<Cow<'static, [u8]>>);

/// The size of a file in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(u64);

impl Metadata for Size {
    fn is_dir(&self) -> bool {
        false
    }

    /// Unknown, so that the answer has no `Last-Modified`: an update may bring an earlier time.
    fn modified(&self) -> io::Result<SystemTime> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn len(&self) -> u64 {
        self.0
    }
}

impl EmbeddedFile {
    fn size(&self) -> Size {
        Size(self.0.get_ref().len() as u64)
    }
}

impl AsyncRead for EmbeddedFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncSeek for EmbeddedFile {
    fn start_seek(mut self: Pin<&mut Self>, position: io::SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.0).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.0).poll_complete(context)
    }
}

impl File for EmbeddedFile {
    type Metadata = Size;
    type MetadataFuture<'a> = Ready<io::Result<Size>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.size()))
    }
}

impl Backend for EmbeddedBackend {
    type File = EmbeddedFile;
    type Metadata = Size;
    type OpenFuture = Ready<io::Result<EmbeddedFile>>;
    type MetadataFuture = Ready<io::Result<Size>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        ready(self.find(&path))
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        ready(self.find(&path).map(|file| file.size()))
    }
}
