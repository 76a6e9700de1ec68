// Words of a batch system about Slingshot networks, and mistakes in them.
#include "transports/ofi/slingshot_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "config/environment.h"

namespace ferry::transport {
namespace {

using testing::HasSubstr;

SlingshotWords Words(const std::string& vnis, const std::string& service_ids,
                     const std::string& devices, const std::string& traffic_classes = "0xa") {
  return {vnis, service_ids, devices, traffic_classes};
}

SlingshotKey Key(const SlingshotWords& words, const std::string& device) {
  const auto key = ReadSlingshotKey(words, device);
  EXPECT_TRUE(key.ok()) << key.status().message();
  return key.ok() && *key ? **key : SlingshotKey{};
}

std::string Refusal(const SlingshotWords& words, const std::string& device = "") {
  const auto key = ReadSlingshotKey(words, device);
  EXPECT_FALSE(key.ok());
  EXPECT_EQ(key.status().code(), ErrorCode::kConfiguration);
  return key.status().message();
}

TEST(SlingshotKeyTest, IsThatOfTheNic) {
  const SlingshotWords words = Words("34,35", "5,6", "cxi0,cxi1");
  const SlingshotKey second = Key(words, "cxi1");
  EXPECT_EQ(second.device, "cxi1");
  EXPECT_EQ(second.service, 6U);
  EXPECT_EQ(second.vni, 34);  // 35 is shared by all steps of the job
  const SlingshotKey any = Key(words, "");
  EXPECT_EQ(any.device, "cxi0");
  EXPECT_EQ(any.service, 5U);
  EXPECT_EQ(Key(Words("65535", "4294967295", "cxi7"), "").vni, 65535);
}

TEST(SlingshotKeyTest, IsMadeOfTheEnvironment) {
  const char* const environment[] = {"SLINGSHOT_TCS=0x2",   "SLINGSHOT_DEVICES=cxi3", "PATH=/bin",
                                     "SLINGSHOT_SVC_IDS=9", "SLINGSHOT_VNIS=7",       nullptr};
  const SlingshotWords words = TakeSlingshotWords(environment, &config::FindVariable);
  EXPECT_EQ(words.vnis, "7");
  EXPECT_EQ(words.service_ids, "9");
  EXPECT_EQ(words.devices, "cxi3");
  EXPECT_EQ(words.traffic_classes, "0x2");
  const char* const none[] = {"PATH=/bin", nullptr};
  EXPECT_TRUE(TakeSlingshotWords(none, &config::FindVariable).AreUnset());
}

TEST(SlingshotKeyTest, WithoutWordsThereIsNone) {
  const auto key = ReadSlingshotKey({}, "cxi0");
  ASSERT_TRUE(key.ok());
  EXPECT_FALSE(key->has_value());
}

TEST(SlingshotKeyTest, TakesBestEffortWhereTheJobMay) {
  const auto of = [](const std::string& classes) {
    return Key(Words("34", "5", "cxi0", classes), "").traffic_class;
  };
  EXPECT_EQ(of(""), FI_TC_UNSPEC);
  EXPECT_EQ(of("0xf"), FI_TC_UNSPEC);
  EXPECT_EQ(of("0XA"), FI_TC_UNSPEC);
  EXPECT_EQ(of("10"), FI_TC_UNSPEC);
  EXPECT_EQ(of("0x6"), FI_TC_LOW_LATENCY);
  EXPECT_EQ(of("5"), FI_TC_DEDICATED_ACCESS);
  EXPECT_EQ(of("0x4"), FI_TC_BULK_DATA);
}

TEST(SlingshotKeyTest, MistakesNameTheVariable) {
  EXPECT_THAT(Refusal(Words("", "5", "cxi0")), HasSubstr("SLINGSHOT_VNIS is not set"));
  EXPECT_THAT(Refusal(Words("34", "", "cxi0")), HasSubstr("SLINGSHOT_SVC_IDS is not set"));
  EXPECT_THAT(Refusal(Words("34", "5", "")), HasSubstr("SLINGSHOT_DEVICES is not set"));
  for (const char* vnis : {"0", "65536", "-1", "34,", ",34", "34,x", "0x22", "34 ", " "}) {
    EXPECT_THAT(Refusal(Words(vnis, "5", "cxi0")), HasSubstr("SLINGSHOT_VNIS is '")) << vnis;
  }
  for (const char* ids : {"0", "4294967296", "5,", "five"}) {
    EXPECT_THAT(Refusal(Words("34", ids, "cxi0")), HasSubstr("SLINGSHOT_SVC_IDS is '")) << ids;
  }
  for (const char* classes : {"0", "0x", "0x10", "low", "0xfffffffff", "0xa,"}) {
    EXPECT_THAT(Refusal(Words("34", "5", "cxi0", classes)), HasSubstr("SLINGSHOT_TCS is '"))
        << classes;
  }
  EXPECT_THAT(Refusal(Words("34", "5", "cxi0,cxi1")),
              HasSubstr("1 services for the 2 NICs of SLINGSHOT_DEVICES (cxi0,cxi1)"));
  EXPECT_THAT(Refusal(Words("34", "5,6", ",cxi1")), HasSubstr("a name is missing"));
  EXPECT_THAT(Refusal(Words("34", "5,6", "cxi0,cxi1"), "cxi2"),
              HasSubstr("the job may not use the NIC cxi2"));
}

}  // namespace
}  // namespace ferry::transport
