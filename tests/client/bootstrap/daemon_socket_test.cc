// Whom a client takes for a ferryd: before it says a word.
#include "client/bootstrap/daemon_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "daemon/sockets/packet_socket.h"
#include "tests/support/patience.h"

namespace ferry::client {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kAnn = 1234567;
constexpr uid_t kBob = 7654321;

// While it lives this process acts as that user. Needs root.
class As {
 public:
  explicit As(uid_t uid) { EXPECT_EQ(seteuid(uid), 0); }
  ~As() { EXPECT_EQ(seteuid(0), 0); }
  As(const As&) = delete;
  As& operator=(const As&) = delete;
};

class DaemonSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(base_.data()), nullptr);
    fs::permissions(base_, fs::perms(0755));
    directory_ = base_ + "/run";
  }
  void TearDown() override { fs::remove_all(base_); }

  // Makes a run directory of that user, in which a process listens.
  void Make(uid_t owner, fs::perms mode = fs::perms(0755)) const {
    fs::create_directory(directory_);
    fs::permissions(directory_, mode);
    EXPECT_TRUE(geteuid() != 0 || chown(directory_.c_str(), owner, owner) == 0);
  }
  void Listen() {
    StatusOr<UniqueFd> listener =
        daemon::ListenUnix(directory_ + "/attach.sock", SOCK_SEQPACKET, 0666);
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    listener_ = std::move(*listener);
  }
  void ListenAs(uid_t uid) {
    const As user(uid);
    Listen();
  }
  StatusOr<UniqueFd> Connect(const std::string& daemon_user = "") {
    return ConnectToDaemon(
        {directory_, "attach.sock", SOCK_SEQPACKET, tests::kPatienceMs, daemon_user}, &error_);
  }
  StatusOr<UniqueFd> ConnectAs(uid_t uid, const std::string& daemon_user = "") {
    const As user(uid);
    return Connect(daemon_user);
  }
  void ExpectRefusal(const StatusOr<UniqueFd>& socket, const std::string& words) {
    ASSERT_FALSE(socket.ok());
    EXPECT_EQ(socket.status().code(), ErrorCode::kRunDirectory);
    EXPECT_THAT(socket.status().message(), AllOf(HasSubstr(directory_), HasSubstr(words)));
  }
  void ExpectNobodyCame() const {
    pollfd asked{listener_.get(), POLLIN, 0};
    EXPECT_EQ(poll(&asked, 1, 0), 0);
  }

  std::string base_ = "/tmp/ferry-socket-XXXXXX";
  std::string directory_;
  UniqueFd listener_;
  int error_ = -1;
};

TEST_F(DaemonSocketTest, ItsOwnUsersIsSpokenTo) {
  Make(geteuid());
  Listen();
  const StatusOr<UniqueFd> socket = Connect();
  ASSERT_TRUE(socket.ok()) << socket.status().message();
  EXPECT_TRUE(socket->valid());
  EXPECT_EQ(error_, 0);
}

TEST_F(DaemonSocketTest, SaysWhyTheKernelRefuses) {
  EXPECT_TRUE(Connect().ok());
  EXPECT_EQ(error_, ENOENT);
  Make(geteuid());
  EXPECT_TRUE(Connect().ok());
  EXPECT_EQ(error_, ENOENT);
  Listen();
  listener_.Reset();
  EXPECT_TRUE(Connect().ok());
  EXPECT_EQ(error_, ECONNREFUSED);
}

TEST_F(DaemonSocketTest, ALinkIsNotFollowed) {
  Make(geteuid());
  Listen();
  fs::create_directory_symlink(directory_, base_ + "/link");
  directory_ = base_ + "/link";
  ExpectRefusal(Connect(), "is a symbolic link");
  ExpectNobodyCame();
}

TEST_F(DaemonSocketTest, NorADirectoryUsedIntoWhichOthersWrite) {
  for (const unsigned mode : {0775U, 0757U, 01777U}) {
    Make(geteuid(), fs::perms(mode));
    Listen();
    ExpectRefusal(Connect(), "can be written by other users");
    ExpectNobodyCame();
    fs::remove_all(directory_);
  }
}

// The name that a directory has before ferryd has made one up: anybody may have made it.
TEST_F(DaemonSocketTest, NobodyServesADirectoryThatIsStillToBeMade) {
  directory_ = base_ + "/ferry-7-XXXXXX";
  Make(geteuid());
  Listen();
  EXPECT_TRUE(Connect().ok());
  EXPECT_EQ(error_, ENOENT);
  ExpectNobodyCame();
}

class ForeignServerTest : public DaemonSocketTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root, to become several users";
    }
    DaemonSocketTest::SetUp();
  }
};

TEST_F(ForeignServerTest, RootsIsSpokenTo) {
  Make(0);
  Listen();
  EXPECT_TRUE(ConnectAs(kAnn).ok());
  EXPECT_EQ(error_, 0);
}

TEST_F(ForeignServerTest, ADirectoryOfSomebodyElseIsNotUsed) {
  Make(kBob);
  ListenAs(kBob);
  ExpectRefusal(ConnectAs(kAnn), "is of uid 7654321, not root's or your own (uid 1234567)");
  ExpectRefusal(Connect(), "is of uid 7654321, not root's or your own (uid 0)");
  ExpectNobodyCame();
}

// As where a stranger has got hold of the socket's name: he is told nothing.
TEST_F(ForeignServerTest, SomebodyElseWhoListensHearsNothing) {
  Make(kBob);
  ListenAs(kBob);
  ASSERT_EQ(chown(directory_.c_str(), kAnn, kAnn), 0);
  ExpectRefusal(ConnectAs(kAnn), "attach.sock is served by a process of uid 7654321");
  const UniqueFd caller(accept(listener_.get(), nullptr, nullptr));
  char byte = 0;
  EXPECT_EQ(recv(caller.get(), &byte, 1, 0), 0) << "a hang-up without a word";
}

TEST_F(ForeignServerTest, TheUserThatTheSiteNamesIsSpokenTo) {
  Make(kBob);
  ListenAs(kBob);
  const StatusOr<UniqueFd> refused = ConnectAs(kAnn);
  EXPECT_THAT(refused.status().message(), HasSubstr("FERRY_DAEMON_USER=7654321"));
  EXPECT_TRUE(ConnectAs(kAnn, "7654321").ok());
  ASSERT_EQ(chown(directory_.c_str(), 0, 0), 0);
  EXPECT_TRUE(ConnectAs(kAnn, "7654321").ok()) << "in a directory of root's";
  EXPECT_EQ(ConnectAs(kAnn, "1").status().code(), ErrorCode::kRunDirectory);
  EXPECT_EQ(ConnectAs(kAnn, "no-such-user").status().code(), ErrorCode::kConfiguration);
}

}  // namespace
}  // namespace ferry::client
