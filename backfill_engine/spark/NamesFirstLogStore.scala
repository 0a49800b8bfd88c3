package backfill_assets

import java.io.{File, FileNotFoundException}
import java.util.{Iterator => JavaIterator}

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.delta.storage.HDFSLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/** Delta's log store for local disks, but a listing looks only at the files that are asked for.
  * Delta's own asks for the size and times of all files of the log, several times a commit, to take
  * the newest few.
  */
class NamesFirstLogStore(conf: Configuration) extends HDFSLogStore(conf) {
  override def listFrom(path: Path, conf: Configuration): JavaIterator[FileStatus] = {
    val (files, folder) = (path.getFileSystem(conf), path.getParent)
    val names = Option(new File(folder.toUri.getPath).list())
      .getOrElse(throw new FileNotFoundException(s"No such file or directory: $folder"))
    names
      .filter(_ >= path.getName)
      .sorted
      .iterator
      // Another process may clean the log meanwhile; then a file is as good as never listed.
      .flatMap(name =>
        Try(Option(files.getFileStatus(new Path(folder, name))))
          .recover { case _: FileNotFoundException => None }
          .get
      )
      .asJava
  }
}
