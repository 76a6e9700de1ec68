// The system calls on files: classes and texts of their errors, and short transfers.
#include "mpi/io/posix_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace ferry::mpi {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string NameOf(const std::string& name) {
  return testing::TempDir() + "/" + name + "." + std::to_string(getpid());
}

TEST(PosixFileTest, ErrorsHaveTheirClassAndNameTheFile) {
  const std::vector<std::pair<int, int>> classes = {{ENOENT, MPI_ERR_NO_SUCH_FILE},
                                                    {EEXIST, MPI_ERR_FILE_EXISTS},
                                                    {EACCES, MPI_ERR_ACCESS},
                                                    {EPERM, MPI_ERR_ACCESS},
                                                    {EROFS, MPI_ERR_READ_ONLY},
                                                    {ENOSPC, MPI_ERR_NO_SPACE},
                                                    {EDQUOT, MPI_ERR_QUOTA},
                                                    {ENAMETOOLONG, MPI_ERR_BAD_FILE},
                                                    {EISDIR, MPI_ERR_BAD_FILE},
                                                    {ENOTDIR, MPI_ERR_BAD_FILE},
                                                    {ELOOP, MPI_ERR_BAD_FILE},
                                                    {ETXTBSY, MPI_ERR_FILE_IN_USE},
                                                    {EIO, MPI_ERR_IO},
                                                    {EFBIG, MPI_ERR_IO},
                                                    {EMFILE, MPI_ERR_IO}};
  for (const auto& [error, error_class] : classes) {
    const Failure failure = FailureOfErrno(error, "open", "some name");
    EXPECT_EQ(failure.error_class, error_class) << error;
    EXPECT_THAT(failure.text,
                AllOf(HasSubstr("cannot open 'some name'"), HasSubstr(strerrordesc_np(error))));
  }
  const Failure failure = FailureOfErrno(ENAMETOOLONG, "open", std::string(5000, 'x'));
  EXPECT_LT(failure.text.size(), size_t{MPI_MAX_ERROR_STRING - 100});
  EXPECT_THAT(failure.text, HasSubstr("5000 characters"));
}

TEST(PosixFileTest, MakesAFileOnce) {
  const std::string name = NameOf("made");
  PosixFile file;
  bool created = false;
  ASSERT_TRUE(PosixFile::Create(name, O_RDWR, 0600, true, &file, &created).ok());
  EXPECT_TRUE(created);
  EXPECT_NE(fcntl(file.fd(), F_GETFD) & FD_CLOEXEC, 0);
  PosixFile again;
  EXPECT_EQ(PosixFile::Create(name, O_RDWR, 0600, true, &again, &created).error_class,
            MPI_ERR_FILE_EXISTS);
  EXPECT_FALSE(created);
  EXPECT_TRUE(PosixFile::Create(name, O_RDWR, 0600, false, &again, &created).ok());
  EXPECT_FALSE(created);
  EXPECT_TRUE(file.Close().ok());
  EXPECT_TRUE(file.Close().ok());  // twice does no harm
  EXPECT_TRUE(PosixFile::Remove(name).ok());
  EXPECT_EQ(PosixFile::Remove(name).error_class, MPI_ERR_NO_SUCH_FILE);
}

TEST(PosixFileTest, ADirectoryIsNoFile) {
  PosixFile file;
  EXPECT_EQ(PosixFile::Open(testing::TempDir(), O_RDONLY, &file).error_class, MPI_ERR_BAD_FILE);
  EXPECT_FALSE(file.is_open());
}

TEST(PosixFileTest, ReadsEndAtTheEndOfTheFile) {
  const std::string name = NameOf("short");
  PosixFile file;
  bool created = false;
  ASSERT_TRUE(PosixFile::Create(name, O_RDWR, 0600, false, &file, &created).ok());
  int64_t moved = -1;
  ASSERT_TRUE(file.WriteAt(5, "abc", 3, &moved).ok());
  EXPECT_EQ(moved, 3);
  char data[10] = {};
  ASSERT_TRUE(file.ReadAt(6, data, 10, &moved).ok());
  EXPECT_EQ(moved, 2);
  EXPECT_STREQ(data, "bc");
  ASSERT_TRUE(file.ReadAt(100, data, 10, &moved).ok());
  EXPECT_EQ(moved, 0);
  int64_t size = -1;
  ASSERT_TRUE(file.Allocate(100).ok());
  ASSERT_TRUE(file.GetSize(&size).ok());
  EXPECT_EQ(size, 100);
  ASSERT_TRUE(file.Allocate(50).ok());
  ASSERT_TRUE(file.Sync().ok());
  ASSERT_TRUE(file.GetSize(&size).ok());
  EXPECT_EQ(size, 100);
  EXPECT_TRUE(PosixFile::Remove(name).ok());
}

TEST(PosixFileTest, ScatteredReadsEndAtTheEndOfTheFile) {
  const std::string name = NameOf("scattered");
  PosixFile file;
  bool created = false;
  ASSERT_TRUE(PosixFile::Create(name, O_RDWR, 0600, true, &file, &created).ok());
  constexpr size_t kPlaces = 3000;  // more than a system call takes
  std::string bytes(kPlaces * 3, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 7 + i / 256);
  }
  int64_t moved = 0;
  ASSERT_TRUE(file.WriteAt(10, bytes.data(), static_cast<int64_t>(bytes.size()), &moved).ok());
  std::string to(kPlaces * 3, '.');
  std::vector<iovec> places;
  for (size_t i = 0; i < kPlaces; ++i) {
    places.push_back({to.data() + (kPlaces - 1 - i) * 3, 3});
  }
  ASSERT_TRUE(file.ReadScattered(10 + 3, places, &moved).ok());
  EXPECT_EQ(moved, static_cast<int64_t>(bytes.size()) - 3);
  for (size_t i = 0; i + 1 < kPlaces; ++i) {
    ASSERT_EQ(to.substr((kPlaces - 1 - i) * 3, 3), bytes.substr((i + 1) * 3, 3)) << i;
  }
  EXPECT_EQ(to.substr(0, 3), "...") << "there was nothing for it";
  EXPECT_EQ(file.FindNearness(), PosixFile::Nearness::kLocal)
      << "or the tests have their files on one of another machine";
  unlink(name.c_str());
}

TEST(PosixFileTest, AWriteOverTheLimitSaysHowFarItCame) {
  const std::string name = NameOf("limited");
  PosixFile file;
  bool created = false;
  ASSERT_TRUE(PosixFile::Create(name, O_RDWR, 0600, false, &file, &created).ok());
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto before = signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {60, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string data(100, 'x');
  int64_t moved = -1;
  const Failure failure = file.WriteAt(0, data.data(), 100, &moved);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, before);
  EXPECT_EQ(failure.error_class, MPI_ERR_IO);
  EXPECT_EQ(moved, 60);
  EXPECT_TRUE(PosixFile::Remove(name).ok());
}

TEST(PosixFileTest, FullDevicesHaveNoSpace) {
  PosixFile file;
  ASSERT_TRUE(PosixFile::Open("/dev/full", O_WRONLY, &file).ok());
  int64_t moved = -1;
  EXPECT_EQ(file.WriteAt(0, "x", 1, &moved).error_class, MPI_ERR_NO_SPACE);
  EXPECT_EQ(moved, 0);
}

// A pipe takes and gives what it has at a time; the calls go on until all is there.
TEST(PosixFileTest, PipesMoveAllBytes) {
  const std::string name = NameOf("pipe");
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
  PosixFile both;  // keeps the pipe open at both ends
  ASSERT_TRUE(PosixFile::Open(name, O_RDWR, &both).ok());
  EXPECT_TRUE(both.is_stream());
  const std::string data(1 << 20, 'y');
  std::thread writer([&] {
    int64_t moved = 0;
    EXPECT_TRUE(both.WriteNext(data.data(), 1 << 20, &moved).ok());
    EXPECT_EQ(moved, 1 << 20);
  });
  std::string back(1 << 20, ' ');
  int64_t moved = 0;
  EXPECT_TRUE(both.ReadNext(back.data(), 1 << 20, &moved).ok());
  writer.join();
  EXPECT_EQ(moved, 1 << 20);
  EXPECT_EQ(back, data);
  EXPECT_TRUE(both.Sync().ok());
  EXPECT_TRUE(PosixFile::Remove(name).ok());
}

// The signal would end this process.
TEST(PosixFileTest, AWriteWithoutAReaderFailsAndRaisesNoSignal) {
  const std::string name = NameOf("broken");
  ASSERT_EQ(mkfifo(name.c_str(), 0600), 0);
  PosixFile reader;
  PosixFile writer;
  ASSERT_TRUE(PosixFile::Open(name, O_RDONLY | O_NONBLOCK, &reader).ok());
  ASSERT_TRUE(PosixFile::Open(name, O_WRONLY, &writer).ok());
  ASSERT_TRUE(reader.Close().ok());
  int64_t moved = -1;
  const Failure failure = writer.WriteNext("x", 1, &moved);
  EXPECT_EQ(failure.error_class, MPI_ERR_IO);
  EXPECT_EQ(failure.text, "cannot write to '" + name + "': Broken pipe");
  EXPECT_EQ(moved, 0);
  // Nor does one come later, of a reader that leaves before it has read all.
  std::thread leaves([&] {
    std::array<char, 100> some;
    PosixFile short_reader;
    ASSERT_TRUE(PosixFile::Open(name, O_RDONLY, &short_reader).ok());
    int64_t got = 0;
    ASSERT_TRUE(short_reader.ReadNext(some.data(), some.size(), &got).ok());
  });
  PosixFile second;
  ASSERT_TRUE(PosixFile::Open(name, O_WRONLY, &second).ok());
  const std::string data(1 << 20, 'z');
  EXPECT_EQ(second.WriteNext(data.data(), 1 << 20, &moved).error_class, MPI_ERR_IO);
  EXPECT_LT(moved, 1 << 20);
  leaves.join();
  EXPECT_TRUE(PosixFile::Remove(name).ok());
}

}  // namespace
}  // namespace ferry::mpi
