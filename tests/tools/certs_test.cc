// `ferryctl certs`: the files it makes. tests/e2e/tls_test.cc tests that daemons work with them.
#include "tools/ferryctl/certs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "daemon/tls/tls_files.h"

namespace ferry::tools {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class CertsTest : public testing::Test {
 protected:
  CertsTest() { fs::remove_all(directory_); }

  CertsPlan Plan(std::vector<std::string> nodes) const { return {directory_, std::move(nodes)}; }
  std::string Error(const CertsPlan& plan, ErrorCode code) const {
    const Status status = MakeCerts(plan).status();
    EXPECT_EQ(status.code(), code);
    return status.message();
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void ExpectUsable(const CertsResult& result, size_t index) {
    const NodeFiles& node = result.nodes[index];
    const auto identity = daemon::LoadTls({result.authority, node.certificate, node.key});
    ASSERT_TRUE(identity.ok()) << identity.status().message();
    for (const std::string& name : node.valid_for) {
      EXPECT_TRUE(identity->certificate.CheckName(name).ok()) << name;
    }
  }

  const std::string directory_ = testing::TempDir() + "certs";
};

TEST_F(CertsTest, MakesWhatDaemonsTakeAndOthersCannotRead) {
  const auto result = MakeCerts(Plan({"node0,10.0.0.7,fe80::1,node0.example", "node1"}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->new_authority);
  ASSERT_THAT(result->nodes, SizeIs(2));
  EXPECT_THAT(result->nodes[0].valid_for,
              ElementsAre("node0", "10.0.0.7", "fe80::1", "node0.example"));
  ExpectUsable(*result, 0);
  ExpectUsable(*result, 1);
  size_t files = 0;
  for (const auto& file : fs::directory_iterator(directory_)) {
    struct stat about {};
    stat(file.path().c_str(), &about);
    EXPECT_EQ(about.st_mode & ALLPERMS, 0600U) << file.path();
    ++files;
  }
  EXPECT_EQ(files, 6U);  // a certificate and a key for each and the authority
}

TEST_F(CertsTest, WithoutNodesItIsForThisHost) {
  const auto result = MakeCerts(Plan({}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_THAT(result->nodes, SizeIs(1));
  EXPECT_THAT(result->nodes[0].valid_for, testing::IsSupersetOf({"localhost", "127.0.0.1", "::1"}));
  ExpectUsable(*result, 0);
}

TEST_F(CertsTest, TheTextHoldsTheLinesForTheConfiguration) {
  const auto result = MakeCerts(Plan({"node0,10.0.0.7"}));
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(CertsText(*result), AllOf(HasSubstr("made an authority, " + directory_ + "/ca.pem"),
                                        HasSubstr("node node0, valid for node0 10.0.0.7;"),
                                        HasSubstr("\ntls_ca_file = \"" + directory_ +
                                                  "/ca.pem\"\n"
                                                  "tls_cert_file = \"" +
                                                  directory_ +
                                                  "/node0.pem\"\n"
                                                  "tls_key_file = \"" +
                                                  directory_ + "/node0.key\"\n")));
}

TEST_F(CertsTest, OverwritesNothing) {
  ASSERT_TRUE(MakeCerts(Plan({"node0"})).ok());
  const std::string before = Read(directory_ + "/node0.pem");
  EXPECT_EQ(Error(Plan({"node1", "node0"}), ErrorCode::kAlreadyExists),
            directory_ +
                "/node0.pem is there already and is not overwritten: remove it, or choose "
                "another directory");
  EXPECT_EQ(Read(directory_ + "/node0.pem"), before);
  EXPECT_FALSE(fs::exists(directory_ + "/node1.pem"));  // all or nothing
}

TEST_F(CertsTest, AddsNodesToAnAuthority) {
  ASSERT_TRUE(MakeCerts(Plan({"node0"})).ok());
  const std::string authority = Read(directory_ + "/ca.pem");
  const auto result = MakeCerts(Plan({"node1"}));
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->new_authority);
  EXPECT_EQ(Read(directory_ + "/ca.pem"), authority);
  ExpectUsable(*result, 0);
}

TEST_F(CertsTest, AnAuthorityWithoutItsKeyCannotVouch) {
  ASSERT_TRUE(MakeCerts(Plan({"node0"})).ok());
  fs::remove(directory_ + "/ca.key");
  EXPECT_EQ(
      Error(Plan({"node1"}), ErrorCode::kInvalidArgument),
      "the authority in " + directory_ + " has no readable ca.key: it cannot vouch for nodes");
  std::ofstream(directory_ + "/ca.key") << "hello";
  EXPECT_THAT(Error(Plan({"node1"}), ErrorCode::kInvalidArgument),
              HasSubstr("are damaged or do not belong together"));
}

TEST_F(CertsTest, NamesMustBeNames) {
  EXPECT_EQ(Error(Plan({"node0,a b"}), ErrorCode::kInvalidArgument),
            "\"a b\" is neither a name (letters, digits, '-', '.', '_') nor an IP address");
  for (const char* bad : {"", "node0,", "node0,1.2.3.4:5", "node0,DNS:x", ".hidden"}) {
    EXPECT_THAT(Error(Plan({bad}), ErrorCode::kInvalidArgument), HasSubstr("is neither a name"))
        << bad;
  }
  for (const char* bad : {"ca", "../x", "a/b"}) {
    EXPECT_THAT(Error(Plan({bad}), ErrorCode::kInvalidArgument),
                HasSubstr("a node cannot be called"))
        << bad;
  }
  EXPECT_EQ(Error(Plan({"a", "a,b"}), ErrorCode::kInvalidArgument), "node a is given twice");
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(CertsTest, SaysWhyTheDirectoryCannotBeMade) {
  const CertsPlan plan{directory_ + "/deep/down", {"a"}};
  EXPECT_EQ(Error(plan, ErrorCode::kNotFound),
            "cannot make the directory " + directory_ + "/deep/down: No such file or directory");
}

}  // namespace
}  // namespace ferry::tools
