// Daemons that speak TLS, rightly and wrongly.
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/net_address.h"
#include "common/openssl_ptr.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/port_forwarder.h"
#include "tests/daemon/test_daemon.h"
#include "tests/daemon/tls/test_certificates.h"
#include "tests/e2e/command.h"
#include "tests/support/http2_client.h"

namespace ferry::daemon {
namespace {

using e2e::Eventually;

// Another daemon's service Peer, with a certificate as wrong as a test wants it.
class TlsPeer final : public control::Peer::Service {
 public:
  TlsPeer(const TestAuthority& authority, const tools::CertificateAndKey& node) {
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = authority.certificate();
    options.pem_key_cert_pairs.push_back({node.key, node.certificate});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~TlsPeer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class TlsLinksTest : public ::testing::Test {
 protected:
  config::Options Plain(const std::string& name) const {
    return TestOptions(directory_.path() + "/" + name);
  }
  config::Options Options(const std::string& name, const TestAuthority& authority,
                          const tools::CertificateAndKey& node) const {
    config::Options options = Plain(name);
    authority.Write(directory_.path() + "/tls-" + name, node, &options);
    return options;
  }
  config::Options Options(const std::string& name) const {
    return Options(name, one_, one_.Node({name, "127.0.0.1", "localhost"}));
  }

  static void ConnectTwo(TestDaemon& a, TestDaemon& b) {
    ASSERT_TRUE(a.CreateJobWith("job", 0, b.address()).ok());
    ASSERT_TRUE(b.CreateJobWith("job", 1, a.address()).ok());
  }
  // Waits until `ferryctl status` says `words` of the only peer.
  static void ExpectTrouble(TestDaemon& daemon, const std::string& words) {
    std::string trouble;
    EXPECT_TRUE(Eventually([&] {
      const control::StatusReply status = daemon.GetStatus();
      trouble = status.peers_size() == 1 ? status.peers(0).trouble() : "";
      return trouble.find(words) != std::string::npos;
    })) << trouble;
  }
  // A daemon of node 0 cannot reach the one at `address`: its status and its ranks say why.
  static void ExpectUnreachable(TestDaemon& daemon, const std::string& address,
                                const std::string& words) {
    ASSERT_TRUE(daemon.CreateJobWith("job", 0, address).ok());
    ExpectTrouble(daemon, words);
    TestRank rank("job", 0, 2, 1);
    ASSERT_TRUE(rank.Enter(daemon.attach_path()));
    const Answer missing = rank.Join(1);
    EXPECT_TRUE(missing.still_waiting());
    EXPECT_NE(missing.text().find(words), std::string::npos) << missing.text();
  }

  // Says Hello to the daemon at `address` as `claim`, with a certificate (null: without).
  static Status Greet(const std::string& address, const TestAuthority& trusted,
                      const tools::CertificateAndKey* own, const control::NodeIdentity& claim,
                      uint64_t life = 0, control::HelloReply* answer = nullptr) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = trusted.certificate();
    if (own != nullptr) {
      options.pem_cert_chain = own->certificate;
      options.pem_private_key = own->key;
    }
    const auto stub =
        control::Peer::NewStub(grpc::CreateChannel(address, grpc::SslCredentials(options)));
    control::HelloRequest request;
    *request.mutable_from() = claim;
    request.set_life(life);
    control::HelloReply reply;
    const Status status = TestDaemon::Call(*stub, &PeerStub::Hello, request, &reply);
    if (answer != nullptr) {
      *answer = reply;
    }
    return status;
  }
  static control::NodeIdentity Claim(const std::string& name, const std::string& address) {
    control::NodeIdentity claim = TestIdentity(name, 5);
    claim.set_control_address(address);
    return claim;
  }

  TemporaryDirectory directory_;
  const TestAuthority one_{"authority one"};
  const TestAuthority two_{"authority two"};
};

TEST_F(TlsLinksTest, DaemonsOfOneAuthorityJoinAJobAndAgreeOnKeys) {
  config::Options options = Options("a");
  options.attach_timeout_ms = 20'000;
  TestDaemon a(options);
  options = Options("b");
  options.attach_timeout_ms = 20'000;
  options.control_address = "localhost";  // by name
  TestDaemon b(options);
  ASSERT_NO_FATAL_FAILURE(ConnectTwo(a, b));
  TestRank rank("job", 0, 2, 1);
  TestRank other("job", 1, 2, 1);
  ASSERT_TRUE(rank.Enter(a.attach_path()));
  ASSERT_TRUE(other.Enter(b.attach_path()));
  ASSERT_NO_FATAL_FAILURE(ExpectJoin(rank, other));
  ASSERT_EQ(a.plane.routes().size(), 1U);
  EXPECT_NE(a.plane.routes()[0].send_key, 0U);
  EXPECT_EQ(a.plane.routes()[0].send_key, b.plane.routes()[0].receive_key);
  EXPECT_EQ(b.plane.routes()[0].send_key, a.plane.routes()[0].receive_key);
}

TEST_F(TlsLinksTest, ADaemonOfAnotherAuthorityIsNotSpokenTo) {
  TestDaemon a(Options("a"));
  TestDaemon b(Options("b", two_, two_.Node({"b", "127.0.0.1"})));
  ExpectUnreachable(a, b.address(),
                    "the certificate of the daemon there is of an authority that is not trusted "
                    "(issuer: CN = authority two)");
}

TEST_F(TlsLinksTest, ADaemonWhoseCertificateHasExpiredIsNotSpokenTo) {
  TestDaemon a(Options("a"));
  const TlsPeer peer(one_, one_.Node({"127.0.0.1"}, TestAuthority::Expired()));
  ExpectUnreachable(a, peer.address(), "the certificate of the daemon there expired on ");
}

TEST_F(TlsLinksTest, ADaemonWhoseCertificateIsForAnotherHostIsNotSpokenTo) {
  TestDaemon a(Options("a"));
  TestDaemon b(Options("b", one_, one_.Node({"b", "10.0.0.7"})));
  ExpectUnreachable(a, b.address(),
                    "the certificate of the daemon there is valid for b, 10.0.0.7, not for "
                    "127.0.0.1");
}

TEST_F(TlsLinksTest, ADaemonThatIsRefusedIsToldWhereToLook) {
  // `a` trusts both authorities, `b` trusts only its own.
  const config::Options options = Options("a");
  WriteFile(options.tls_ca_file, one_.certificate() + two_.certificate());
  TestDaemon a(options);
  TestDaemon b(Options("b", two_, two_.Node({"b", "127.0.0.1"})));
  ExpectUnreachable(a, b.address(), "it may refuse this one's certificate (CN = a, valid for a");
}

TEST_F(TlsLinksTest, WithAndWithoutTlsEachSideSaysWhatIsAmiss) {
  TestDaemon a(Options("a"));
  config::Options options = Plain("b");
  options.attach_timeout_ms = 300;
  TestDaemon b(options);
  ExpectUnreachable(a, b.address(), "the daemon there does not speak TLS");
  ExpectUnreachable(b, a.address(), "it may want TLS, which this one is not set up for");
}

TEST_F(TlsLinksTest, NobodyReachesTheServiceWithoutAGoodCertificate) {
  TestDaemon a(Options("a"));
  const control::NodeIdentity claim = Claim("b", "127.0.0.1:1");
  const tools::CertificateAndKey good = one_.Node({"b", "127.0.0.1"});
  ASSERT_TRUE(Greet(a.address(), one_, &good, claim).ok());
  const tools::CertificateAndKey foreign = two_.Node({"b", "127.0.0.1"});
  const tools::CertificateAndKey expired = one_.Node({"b", "127.0.0.1"}, TestAuthority::Expired());
  const tools::CertificateAndKey early = one_.Node({"b", "127.0.0.1"}, TestAuthority::Later());
  for (const tools::CertificateAndKey* bad : std::initializer_list<const tools::CertificateAndKey*>{
           nullptr, &foreign, &expired, &early}) {
    ExpectError(Greet(a.address(), one_, bad, claim), ErrorCode::kNodeUnreachable, "");
  }
  control::HelloRequest request;
  *request.mutable_from() = claim;
  ExpectError(a.Tell(&PeerStub::Hello, request), ErrorCode::kNodeUnreachable, "");  // in plain text
}

TEST_F(TlsLinksTest, AGreetingMustBeOfWhomTheCertificateNames) {
  TestDaemon a(Options("a"));
  const tools::CertificateAndKey node = one_.Node({"b", "10.0.0.7"});
  EXPECT_TRUE(Greet(a.address(), one_, &node, Claim("c", "10.0.0.7:1")).ok());
  // A name certifies nothing: daemons are told apart by their addresses.
  ExpectError(Greet(a.address(), one_, &node, Claim("b", "10.0.0.8:1")),
              ErrorCode::kPermissionDenied,
              "the certificate of the daemon of node b is valid for b, 10.0.0.7, not for 10.0.0.8, "
              "the host of its control address 10.0.0.8:1");
}

TEST_F(TlsLinksTest, WithTlsAnAddressNeedNotBeLoopback) {
  config::Options options = Options("a");
  options.control_address = "192.0.2.7";  // belongs to no machine
  FakeDataPlane plane;
  ExpectError(ControlServer::Start(options, plane, nullptr).status(), ErrorCode::kInvalidArgument,
              "cannot listen at 192.0.2.7:0: ");
}

// Nothing can call 0.0.0.0, and no certificate is for it: others are told the node's name.
TEST_F(TlsLinksTest, ADaemonThatListensEverywhereIsCalledByItsNodesName) {
  config::Options options = Options("a");
  options.attach_timeout_ms = 20'000;
  options.control_address = "0.0.0.0";
  options.node_name = "localhost";
  TestDaemon a(options);
  EXPECT_EQ(a.address().substr(0, a.address().find(':')), "localhost");
  EXPECT_EQ(a.GetStatus().node().control_address(), a.address());
  TestDaemon b(Options("b"));
  ASSERT_NO_FATAL_FAILURE(ConnectTwo(a, b));
  EXPECT_TRUE(Eventually([&] {
    const control::StatusReply status = b.GetStatus();
    return status.peers_size() == 1 && status.peers(0).state() == "up";
  })) << b.GetStatus().DebugString();
}

// A daemon that is certified, too, knows all that another one says of itself.
TEST_F(TlsLinksTest, ACertifiedDaemonCannotGreetAsAnotherOne) {
  TestDaemon a(Options("a"));
  TestDaemon b(Options("b"));
  ASSERT_NO_FATAL_FAILURE(ConnectTwo(a, b));
  ASSERT_TRUE(a.plane.WaitFor("AddNode job 1"));
  const control::NodeIdentity claim = b.GetStatus().node();
  const tools::CertificateAndKey other = one_.Node({"c", "10.0.0.9"});
  ExpectError(Greet(a.address(), one_, &other, claim), ErrorCode::kPermissionDenied,
              "the host of its control address");
  // So does one on the same host, whose certificate is for that host.
  const tools::CertificateAndKey neighbour = one_.Node({"c", "127.0.0.1"});
  control::HelloReply reply;
  ASSERT_TRUE(Greet(a.address(), one_, &neighbour, claim, 9, &reply).ok());
  EXPECT_EQ(reply.data_key(), 0U);
  EXPECT_TRUE(reply.from().fabric_address().empty());
  EXPECT_EQ(a.plane.Count("NodeFailed"), 0U);
}

// A port that leads to a daemon has a good certificate. But it is not where the daemon says it is.
TEST_F(TlsLinksTest, AnAliasOfADaemonIsRefusedAndItsEndHarmsNobody) {
  TestDaemon a(Options("a"));
  TestDaemon b(Options("b"));
  ASSERT_NO_FATAL_FAILURE(ConnectTwo(a, b));
  ASSERT_TRUE(a.plane.WaitFor("AddNode job 1"));
  auto alias = std::make_unique<PortForwarder>(b.address());
  ASSERT_TRUE(a.CreateJobWith("alias", 0, alias->address()).ok());
  TestRank rank("alias", 0, 2, 1);
  ASSERT_TRUE(rank.Enter(a.attach_path()));
  ExpectError(rank.Join().status(), ErrorCode::kInvalidArgument, "is reached at " + b.address());
  alias.reset();
  EXPECT_TRUE(a.HearsFrom(b.address(), 5));
  EXPECT_EQ(a.plane.Count("NodeFailed"), 0U);
}

// A client of the control port that speaks TLS, and inside it anything.
class TlsClient {
 public:
  TlsClient(uint16_t port, const tools::CertificateAndKey& own)
      : plain_(tests::Http2Client::ToPort(port)),
        context_(SSL_CTX_new(TLS_client_method())),
        ssl_(SSL_new(context_.get())) {
    const BioPtr certificate(BIO_new_mem_buf(own.certificate.data(), -1));
    const BioPtr key(BIO_new_mem_buf(own.key.data(), -1));
    const X509Ptr x509(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr));
    const KeyPtr own_key(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr));
    EXPECT_EQ(SSL_use_certificate(ssl_.get(), x509.get()), 1);
    EXPECT_EQ(SSL_use_PrivateKey(ssl_.get(), own_key.get()), 1);
    const unsigned char http2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(ssl_.get(), http2, sizeof(http2));
    SSL_set_fd(ssl_.get(), plain_.fd());
    EXPECT_EQ(SSL_connect(ssl_.get()), 1);
  }
  void Send(const std::string& text) {
    EXPECT_EQ(SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
  }
  // Reads until `words` have come. False: it was hung up on.
  bool WaitFor(const std::string& words) {
    std::string all;
    char piece[1024];
    while (all.find(words) == all.npos) {
      const int size = SSL_read(ssl_.get(), piece, sizeof(piece));
      if (size <= 0) {
        return false;
      }
      all.append(piece, static_cast<size_t>(size));
    }
    return true;
  }

 private:
  tests::Http2Client plain_;
  std::unique_ptr<SSL_CTX, OpensslDeleter<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, OpensslDeleter<SSL_free>> ssl_;
};

// Its calls inside TLS are checked as those of others without TLS.
TEST_F(TlsLinksTest, ACertifiedClientIsBoundedAsOthersAre) {
  using http2::Frame;
  using http2::FrameType;
  TestDaemon a(Options("a"));
  const uint16_t port = ParseHostPort(a.address())->port;
  const tools::CertificateAndKey own = one_.Node({"b", "127.0.0.1"});
  TlsClient good(port, own);
  good.Send(tests::Http2Greeting() + Frame(FrameType::kPing, 0, 0, "question"));
  EXPECT_TRUE(good.WaitFor("question"));
  TlsClient bad(port, own);
  bad.Send(tests::Http2Greeting() + Frame(FrameType::kHeaders, 0, 1, "endless") +
           Frame(FrameType::kPing, 0, 0, "question"));
  EXPECT_FALSE(bad.WaitFor("question"));
  good.Send(Frame(FrameType::kPing, 0, 0, "again..."));
  EXPECT_TRUE(good.WaitFor("again..."));
}

// A separate ferryd, to receive signals.
class TlsReloadTest : public TlsLinksTest {
 protected:
  TlsReloadTest()
      : options_(Options("run")),
        ferryd_(options_.run_directory, {"--max_local_ranks=4", "--attach_timeout_ms=600000",
                                         "--tls_ca_file=" + options_.tls_ca_file,
                                         "--tls_cert_file=" + options_.tls_cert_file,
                                         "--tls_key_file=" + options_.tls_key_file}) {}
  void SetUp() override { ASSERT_TRUE(ferryd_.WaitUntilReady()) << ferryd_.Errors(); }

  // Returns true if a daemon that trusts and has certificates of `authority` only can talk to it.
  bool Answers(const TestAuthority& authority) {
    const tools::CertificateAndKey own = authority.Node({"x", "127.0.0.1"});
    return Greet(ferryd_.ControlAddress(), authority, &own, Claim("x", "127.0.0.1:1")).ok();
  }
  void Hangup(const std::string& words) {
    ferryd_.Signal(SIGHUP);
    EXPECT_TRUE(Eventually([&] { return ferryd_.Errors().find(words) != std::string::npos; }))
        << ferryd_.Errors();
  }

  const config::Options options_;
  FerrydProcess ferryd_;
};

TEST_F(TlsReloadTest, SighupTakesNewFiles) {
  EXPECT_TRUE(Answers(one_));
  EXPECT_FALSE(Answers(two_));
  config::Options ignored;
  two_.Write(directory_.path() + "/tls-run", two_.Node({"b", "127.0.0.1"}), &ignored);
  EXPECT_FALSE(Answers(two_));  // not by itself
  Hangup("reload: new connections use the TLS files as they are now: CN = b");
  EXPECT_TRUE(Answers(two_));
  EXPECT_FALSE(Answers(one_));
}

// Of strangers with nine uids, more than connections there may be.
TEST_F(TlsReloadTest, SilentConnectionsKeepNoDaemonOut) {
  if (!CanBecomeOthers()) {
    GTEST_SKIP() << "needs many users: run as root";
  }
  constexpr uid_t kFirst = 20'000;
  constexpr int kUsers = 9;
  constexpr int kOfUser = 4 + 64;  // as many as one may have: see control_server.cc
  ASSERT_TRUE(Answers(one_));
  const uint16_t port = ParseHostPort(ferryd_.ControlAddress())->port;
  std::vector<tests::Http2Client> silent;
  for (uid_t user = kFirst; user < kFirst + kUsers; ++user) {
    ASSERT_EQ(seteuid(user), 0);
    for (int i = 0; i < kOfUser; ++i) {
      silent.push_back(tests::Http2Client::ToPort(port));
    }
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_TRUE(Answers(one_));
  EXPECT_TRUE(Answers(one_)) << "again, while they are still there";
}

TEST_F(TlsReloadTest, AfterABadFileEverythingIsAsBefore) {
  WriteFile(options_.tls_cert_file, two_.Node({"b"}).certificate);
  Hangup("reload: the TLS files read before stay in use: tls_key_file " + options_.tls_key_file +
         " is not the key");
  EXPECT_TRUE(Answers(one_));
}

TEST_F(TlsLinksTest, SighupWithoutTlsIsIgnored) {
  FerrydProcess ferryd(Plain("run").run_directory, {});
  ASSERT_TRUE(ferryd.WaitUntilReady()) << ferryd.Errors();
  ferryd.Signal(SIGHUP);
  EXPECT_TRUE(Eventually(
      [&] { return ferryd.Errors().find("reload: no TLS files to read") != std::string::npos; }));
  ferryd.Signal(SIGTERM);
  EXPECT_EQ(ferryd.Wait(), 0);
}

}  // namespace
}  // namespace ferry::daemon
