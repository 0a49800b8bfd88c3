package backfill_assets

import java.nio.file.Files
import java.nio.file.attribute.PosixFilePermissions

import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{LocalFileSystem, Path, RawLocalFileSystem}

/** Hadoop's local file system, but it sets permissions by a system call. Without Hadoop's native
  * library, which PySpark doesn't ship, Hadoop starts a `chmod` for it: three for each data file.
  */
class ForklessLocalFileSystem extends LocalFileSystem(new ForklessRawLocalFileSystem)

class ForklessRawLocalFileSystem extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit =
    if (permission.getStickyBit) super.setPermission(path, permission)
    else {
      val symbols = PosixFilePermissions.fromString(permission.toString)
      Files.setPosixFilePermissions(pathToFile(path).toPath, symbols)
    }
}
