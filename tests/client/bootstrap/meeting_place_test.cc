// Environments that name a place to meet: those of torchrun, Kubernetes' jobs and scripts, and
// those with mistakes.
#include "client/bootstrap/meeting_place.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "client/bootstrap/pmi_job.h"

namespace ferry::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Variables = std::vector<std::string>;

std::vector<const char*> Environment(const Variables& variables) {
  std::vector<const char*> environment;
  for (const std::string& variable : variables) {
    environment.push_back(variable.c_str());
  }
  environment.push_back(nullptr);
  return environment;
}

StatusOr<MeetingPlace> Read(const Variables& variables, const std::string& secret = "") {
  config::Options options;
  options.job_secret = secret;
  return ReadMeetingPlace(Environment(variables).data(), options);
}

Variables With(Variables variables, const Variables& more) {
  variables.insert(variables.begin(), more.begin(), more.end());  // the first one counts
  return variables;
}

// Rank 5 of `torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d`.
const Variables kTorchrun = {"LOCAL_RANK=1",
                             "RANK=5",
                             "GROUP_RANK=1",
                             "ROLE_RANK=5",
                             "ROLE_NAME=default",
                             "LOCAL_WORLD_SIZE=4",
                             "WORLD_SIZE=8",
                             "GROUP_WORLD_SIZE=2",
                             "ROLE_WORLD_SIZE=8",
                             "MASTER_ADDR=n1",
                             "MASTER_PORT=29500",
                             "TORCHELASTIC_RESTART_COUNT=0",
                             "TORCHELASTIC_MAX_RESTARTS=0",
                             "TORCHELASTIC_RUN_ID=run 7",
                             "TORCHELASTIC_USE_AGENT_STORE=True",
                             "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"};
// A pod of a Kubernetes job.
const Variables kPod = {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=job-0.job", "MASTER_PORT=23456"};
constexpr char kSecret[] = "0123456789abcdef";

TEST(MeetingPlaceTest, ReadsWhatTorchrunSays) {
  const auto place = Read(kTorchrun, kSecret);
  ASSERT_TRUE(place.ok()) << place.status().message();
  EXPECT_EQ(place->rank, 5U);
  EXPECT_EQ(place->size, 8U);
  EXPECT_EQ(place->local_rank, 1U);
  EXPECT_EQ(place->address.Text(), "n1:29501");  // torchrun itself listens at 29500
  EXPECT_EQ(place->job, "run 7");
  EXPECT_FALSE(place->calls_locally);
  EXPECT_TRUE(place->serves_port);
}

TEST(MeetingPlaceTest, RanksOfOneNodeNeedNoSecret) {
  const auto by_size = Read(With(kTorchrun, {"LOCAL_WORLD_SIZE=8"}));
  ASSERT_TRUE(by_size.ok()) << by_size.status().message();
  EXPECT_TRUE(by_size->calls_locally);
  EXPECT_FALSE(by_size->serves_port);
  EXPECT_THAT(by_size->local_name, AllOf(HasSubstr(std::to_string(geteuid())), HasSubstr("29501")));
  for (const char* host : {"MASTER_ADDR=localhost", "MASTER_ADDR=127.0.0.1", "MASTER_ADDR=::1"}) {
    const auto by_host = Read(With(kTorchrun, {host}));
    ASSERT_TRUE(by_host.ok()) << by_host.status().message();
    EXPECT_TRUE(by_host->calls_locally);
  }
  EXPECT_TRUE(Read(With(kPod, {"RANK=0", "WORLD_SIZE=1"})).ok());
}

// Kubernetes tells the first pod that it is "localhost", and the others its name.
TEST(MeetingPlaceTest, ARankZeroThatIsLocalhostServesOthersWhereThereIsASecret) {
  const auto place = Read(With(kPod, {"RANK=0", "MASTER_ADDR=localhost"}), kSecret);
  ASSERT_TRUE(place.ok()) << place.status().message();
  EXPECT_TRUE(place->serves_port);
}

TEST(MeetingPlaceTest, WithoutASecretItSaysWhatToType) {
  const Status status = Read(kPod).status();
  EXPECT_EQ(status.code(), ErrorCode::kConfiguration);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("2 ranks (WORLD_SIZE) meet at MASTER_ADDR=job-0.job"),
                    HasSubstr("openssl rand -hex 32 >job.secret; chmod 600 job.secret"),
                    HasSubstr("FERRY_JOB_SECRET_FILE=$PWD/job.secret"),
                    HasSubstr("LOCAL_WORLD_SIZE=2 or MASTER_ADDR=localhost")));
}

TEST(MeetingPlaceTest, MistakesAreNamed) {
  struct Case {
    Variables variables;
    const char* words;
  };
  for (const Case& one : {
           Case{{"RANK=first"}, "RANK=first is no number from 0 to 999999"},
           Case{{"RANK=-1"}, "RANK=-1 is no number"},
           Case{{"RANK=2147483648"}, "RANK=2147483648 is no number"},
           Case{{"WORLD_SIZE=2147483648"}, "WORLD_SIZE=2147483648 is no number from 1 to 1000000"},
           Case{{"WORLD_SIZE=99999999999999999999"}, "is no number from 1 to 1000000"},
           Case{{"WORLD_SIZE=0"}, "WORLD_SIZE=0 is no number from 1"},
           Case{{"WORLD_SIZE=1"}, "RANK=5, but WORLD_SIZE=1"},
           Case{{"LOCAL_WORLD_SIZE=many"}, "LOCAL_WORLD_SIZE=many is no number"},
           Case{{"LOCAL_RANK=x"}, "LOCAL_RANK=x is no number"},
           Case{{"MASTER_PORT=http"}, "MASTER_PORT=http is no number from 1 to 65535"},
           Case{{"MASTER_PORT=65536"}, "MASTER_PORT=65536 is no number from 1 to 65535"},
           Case{{"MASTER_PORT=65535"}, "set FERRY_MEETING_PORT to a free port"},
           Case{{"FERRY_MEETING_PORT=0"}, "FERRY_MEETING_PORT=0 is no number from 1 to 65535"},
           Case{{"FERRY_JOB_SECRET_FILE=/nowhere"}, "both FERRY_JOB_SECRET and"},
       }) {
    const Status status = Read(With(kTorchrun, one.variables), kSecret).status();
    EXPECT_EQ(status.code(), ErrorCode::kConfiguration) << one.words;
    EXPECT_THAT(status.message(), HasSubstr(one.words));
  }
  EXPECT_EQ(Read(With(kTorchrun, {"MASTER_PORT=65535", "FERRY_MEETING_PORT=4000"}), kSecret)
                ->address.Text(),
            "n1:4000");
  EXPECT_THAT(Read(kPod, "short").status().message(),
              AllOf(HasSubstr("a secret of 5 bytes"), HasSubstr("at least 16")));
}

class SecretFileTest : public testing::Test {
 protected:
  void Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }
  StatusOr<MeetingPlace> ReadIt() { return Read(With(kPod, {"FERRY_JOB_SECRET_FILE=" + path_})); }

  const std::string path_ = testing::TempDir() + "job.secret";
};

TEST_F(SecretFileTest, HoldsTheSecretWithoutItsLineEnd) {
  Write("0123456789abcdef\n");
  const auto place = ReadIt();
  ASSERT_TRUE(place.ok()) << place.status().message();
  EXPECT_EQ(place->secret, kSecret);
}

TEST_F(SecretFileTest, MistakesAreNamed) {
  unlink(path_.c_str());
  EXPECT_THAT(ReadIt().status().message(), HasSubstr("No such file"));
  Write("0123456789abcdef", 0644);
  EXPECT_THAT(ReadIt().status().message(), HasSubstr("is open to other users: chmod 600"));
  Write(" \n");
  EXPECT_THAT(ReadIt().status().message(), HasSubstr("a secret of 0 bytes"));
  Write(std::string(5000, 'x'));
  EXPECT_THAT(ReadIt().status().message(), HasSubstr("more than 4096 bytes"));
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(ReadIt().status().message(), HasSubstr("is no ordinary file"));
  unlink(path_.c_str());
}

// ---- Which launcher counts ----

ExchangeKind Find(const Variables& variables) {
  return FindExchange(Environment(variables).data());
}

TEST(FindExchangeTest, AMeetingPlaceNeedsAllFourVariables) {
  EXPECT_EQ(Find(kPod), ExchangeKind::kMeetingPlace);
  EXPECT_EQ(Find({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=n1"}), ExchangeKind::kNone);
  EXPECT_EQ(Find({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=", "MASTER_PORT=1"}), ExchangeKind::kNone);
  EXPECT_EQ(Find({}), ExchangeKind::kNone);
}

TEST(FindExchangeTest, AServerComesBeforeAMeetingPlace) {
  EXPECT_EQ(Find(With(kPod, {"PMIX_NAMESPACE=n", "PMIX_RANK=0"})), ExchangeKind::kPmix);
  EXPECT_EQ(Find(With(kPod, {"PMI_PORT=n:1", "PMI_ID=0"})), ExchangeKind::kPmi1);
}

// srun may start a torchrun on each node, whose ranks have the variables of both.
TEST(FindExchangeTest, TorchrunComesBeforeTheLauncherThatStartedIt) {
  EXPECT_EQ(Find(With(kTorchrun, {"PMIX_NAMESPACE=n", "PMIX_RANK=0"})),
            ExchangeKind::kMeetingPlace);
  EXPECT_EQ(Find(With(kTorchrun, {"PMI_FD=999999", "PMI_RANK=0", "PMI_SIZE=2"})),
            ExchangeKind::kMeetingPlace);
  EXPECT_EQ(Find(With(kTorchrun, {"PALS_RANKID=0"})), ExchangeKind::kMeetingPlace);
}

TEST(FindExchangeTest, ALauncherThatARankOfTorchrunStartedComesBeforeTorchrun) {
  const int fd = dup(STDERR_FILENO);
  EXPECT_EQ(Find(With(kTorchrun, {"PMI_FD=" + std::to_string(fd), "PMI_RANK=0", "PMI_SIZE=2"})),
            ExchangeKind::kPmi1);
  close(fd);
}

}  // namespace
}  // namespace ferry::client
