package backfill_assets

import java.net.URI
import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._
import org.apache.hadoop.fs.local.LocalConfigKeys
import org.apache.hadoop.fs.permission.FsPermission

/** Hadoop's local file system, but it sets permissions and looks for links by system calls. Without
  * Hadoop's native library, which PySpark doesn't ship, Hadoop starts a process for either: a
  * `chmod` or three for each file, and sixteen `readlink`s for each commit of Delta.
  */
class ForklessLocalFileSystem extends LocalFileSystem(new ForklessRawLocalFileSystem)

class ForklessRawLocalFileSystem extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit =
    if (permission.getStickyBit) super.setPermission(path, permission)
    else {
      val symbols = PosixFilePermissions.fromString(permission.toString)
      Files.setPosixFilePermissions(pathToFile(path).toPath, symbols)
    }

  override def getFileLinkStatus(path: Path): FileStatus =
    if (Files.isSymbolicLink(pathToFile(path).toPath)) super.getFileLinkStatus(path)
    else getFileStatus(path)
}

/** The same for Hadoop's newer interface, by which Delta writes its log. */
class ForklessLocalFs(uri: URI, conf: Configuration)
    extends ChecksumFs(new ForklessRawLocalFs(conf))

/** As Hadoop's own `RawLocalFs`, which can't be told of another file system. */
class ForklessRawLocalFs(conf: Configuration)
    extends DelegateToFileSystem(
      FsConstants.LOCAL_FS_URI,
      new ForklessRawLocalFileSystem,
      conf,
      FsConstants.LOCAL_FS_URI.getScheme,
      false
    ) {
  override def getUriDefaultPort: Int = -1
  override def getServerDefaults(path: Path): FsServerDefaults = LocalConfigKeys.getServerDefaults
  @deprecated("as Hadoop's", "3.0")
  override def getServerDefaults: FsServerDefaults = LocalConfigKeys.getServerDefaults
  override def isValidName(name: String): Boolean = true
}
