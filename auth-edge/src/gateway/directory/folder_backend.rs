//! Opens the files of a folder. A symbolic link adds no file from elsewhere.
//!
//! Invariant: every opened file, with all links followed, is below the folder, even if a link is swapped
//! meanwhile. Links that stay inside are followed: mounted ConfigMaps consist of them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tower_http::services::fs::{Backend, TokioBackend, TokioFile};

/// The kernel's list of open files. On Linux its links show the real path of each file.
const OPEN_FILES: &str = if cfg!(target_os = "linux") {
    "/proc/self/fd"
} else {
    "/dev/fd"
};

/// Opens the files of one folder.
#[derive(Clone, Debug)]
pub(super) struct FolderBackend(Arc<Path>);

impl FolderBackend {
    /// Opens only files below `folder`.
    pub(super) fn of(folder: &Path) -> Self {
        Self(folder.into())
    }

    /// The folder's path and the file's path, both without links.
    fn resolve_path(&self, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
        // Resolved each time: a deployment may swap the folder itself.
        let root = self.0.canonicalize()?;
        // A broken link, a loop, or a link out of the folder counts as not found.
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&root));
        real.map(|real| (root, real))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// An open file of the folder, and a path by which the kernel opens it again.
    fn open_file(&self, path: &Path) -> io::Result<(File, PathBuf)> {
        let (root, real) = self.resolve_path(path)?;
        let file = File::open(real)?;
        let descriptor = descriptor_below(&root, &file)?;
        Ok((file, descriptor))
    }
}

/// Checks the open file itself: a link may have replaced it after its path was resolved.
fn descriptor_below(root: &Path, file: &File) -> io::Result<PathBuf> {
    let descriptor = Path::new(OPEN_FILES).join(file.as_raw_fd().to_string());
    if cfg!(not(target_os = "linux")) || std::fs::read_link(&descriptor)?.starts_with(root) {
        Ok(descriptor)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Backend for FolderBackend {
    type File = TokioFile;
    type Metadata = std::fs::Metadata;
    type OpenFuture = BoxFuture<'static, io::Result<TokioFile>>;
    type MetadataFuture = BoxFuture<'static, io::Result<std::fs::Metadata>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let folder = self.clone();
        let opening = tokio::task::spawn_blocking(move || folder.open_file(&path));
        Box::pin(async move {
            let (_judged, descriptor) = opening.await??;
            TokioBackend.open(descriptor).await
        })
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        let folder = self.clone();
        let metadata = tokio::task::spawn_blocking(move || folder.resolve_path(&path)?.1.metadata());
        Box::pin(async move { metadata.await? })
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
        assert!(descriptor_below(&root, &own).is_ok());
        symlink(outside.path(), folder.path().join("swapped")).unwrap();
        let foreign = File::open(folder.path().join("swapped/a.txt")).unwrap();
        assert!(descriptor_below(&root, &foreign).is_err());
    }
}
