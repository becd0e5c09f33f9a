//! The files of a folder, and none that a symbolic link brings in from elsewhere.
//!
//! Invariant: what is opened lies, all links followed, below the folder; so it does if somebody swaps a link meanwhile.
//! Links that stay inside are followed: mounted ConfigMaps are made of them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File as ServedFile};

/// Where the kernel tells what an open file really is.
#[cfg(target_os = "linux")]
const OPEN_FILES: &str = "/proc/self/fd";

/// Opens what lies in one folder.
#[derive(Clone, Debug)]
pub(super) struct FolderBackend(Arc<Path>);

impl FolderBackend {
    /// Nothing but what is below `folder`.
    pub(super) fn of(folder: &Path) -> Self {
        Self(folder.into())
    }

    /// The root without links, and the path without links below it.
    fn resolved(&self, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
        // Each time anew: a deployment may swap the folder itself.
        let root = self.0.canonicalize()?;
        // What leads nowhere, round in circles or out of the folder is not there.
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&root));
        real.map(|real| (root, real))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn opened(&self, path: &Path) -> io::Result<File> {
        let (root, real) = self.resolved(path)?;
        let file = File::open(real)?;
        lies_below(&root, &file)?;
        Ok(file)
    }
}

/// Judges the open file itself: a link may have replaced it since its path was resolved.
#[cfg(target_os = "linux")]
fn lies_below(root: &Path, file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let real = std::fs::read_link(format!("{OPEN_FILES}/{}", file.as_raw_fd()))?;
    if real.starts_with(root) {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[cfg(not(target_os = "linux"))]
fn lies_below(_root: &Path, _file: &File) -> io::Result<()> {
    Ok(())
}

impl Backend for FolderBackend {
    type File = FolderFile;
    type Metadata = std::fs::Metadata;
    type OpenFuture = BoxFuture<'static, io::Result<FolderFile>>;
    type MetadataFuture = BoxFuture<'static, io::Result<std::fs::Metadata>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let folder = self.clone();
        let opening = tokio::task::spawn_blocking(move || folder.opened(&path));
        Box::pin(async move { Ok(FolderFile(tokio::fs::File::from_std(opening.await??))) })
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        let folder = self.clone();
        let metadata = tokio::task::spawn_blocking(move || folder.resolved(&path)?.1.metadata());
        Box::pin(async move { metadata.await? })
    }
}

/// An open file of the folder.
pub(super) struct FolderFile(tokio::fs::File);

impl AsyncRead for FolderFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncSeek for FolderFile {
    fn start_seek(mut self: Pin<&mut Self>, position: io::SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.0).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.0).poll_complete(context)
    }
}

impl ServedFile for FolderFile {
    type Metadata = std::fs::Metadata;
    type MetadataFuture<'a> = BoxFuture<'a, io::Result<std::fs::Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        Box::pin(self.0.metadata())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_open_file_is_judged_by_where_it_lies() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for at in [&folder, &outside] {
            std::fs::write(at.path().join("a.txt"), "a").unwrap();
        }
        let root = folder.path().canonicalize().unwrap();
        let own = File::open(folder.path().join("a.txt")).unwrap();
        assert!(lies_below(&root, &own).is_ok());
        symlink(outside.path(), folder.path().join("swapped")).unwrap();
        let foreign = File::open(folder.path().join("swapped/a.txt")).unwrap();
        assert!(lies_below(&root, &foreign).is_err());
    }
}
