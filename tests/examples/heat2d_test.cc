// The picture and the solver of heat2d.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "examples/common/five_point.h"
#include "examples/heat2d/image.h"
#include "examples/heat2d/solver.h"

namespace heat2d {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// ---- Images

std::string Write(const std::string& name, const std::string& bytes) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

Image Load(const std::string& bytes) {
  Image image;
  std::string error;
  EXPECT_TRUE(LoadImage(Write("good", bytes), &image, &error)) << error;
  return image;
}

std::string ErrorOf(const std::string& bytes) {
  Image image;
  std::string error;
  EXPECT_FALSE(LoadImage(Write("bad", bytes), &image, &error));
  EXPECT_THAT(error, StartsWith(testing::TempDir() + "bad: "));
  return error;
}

std::string ReadSample() {
  std::ifstream file("examples/heat2d/ferry.png", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ImageTest, ReadsTextPgmWithComments) {
  const Image image = Load("P2 # grey\n# two comments\n3 2\n4\n0 1 2\n3 4 # last\n0\n");
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.height, 2);
  EXPECT_THAT(image.values, ElementsAre(0, 0.25, 0.5, 0.75, 1, 0));
}

TEST(ImageTest, ReadsBinaryPgm) {
  EXPECT_THAT(Load(std::string("P5\n2 1\n255\n\xff\0", 13)).values, ElementsAre(1, 0));
}

TEST(ImageTest, ReadsSixteenBitPgmMostSignificantByteFirst) {
  const Image image = Load(std::string("P5 2 1 65535 \xff\xff\0\x01", 17));
  EXPECT_THAT(image.values, ElementsAre(1, 1.0 / 65535));
}

TEST(ImageTest, AWhiteSpaceByteMayBeTheFirstPixel) {
  EXPECT_THAT(Load("P5 1 1 32 \n").values, ElementsAre(10.0 / 32));
}

TEST(ImageTest, ReadsTheSample) {
  const Image image = Load(ReadSample());
  EXPECT_EQ(image.width, 512);
  EXPECT_EQ(image.height, 512);
  EXPECT_EQ(image.values[104 * 512 + 404], 235 / 255.0);
  EXPECT_EQ(image.values[0], 8 / 255.0);
}

TEST(ImageTest, TurnsColoursIntoGrey) {
  Image image{2, 1, {0, 1}};
  std::string error;
  const std::string path = testing::TempDir() + "colours.png";
  ASSERT_TRUE(SaveHeatMap(path, image, &error)) << error;
  Image read;
  ASSERT_TRUE(LoadImage(path, &read, &error)) << error;
  ASSERT_EQ(read.width, 2);
  EXPECT_LT(read.values[0], 0.05);
  EXPECT_GT(read.values[1], 0.9);
}

TEST(ImageTest, NamesAMissingFile) {
  Image image;
  std::string error;
  EXPECT_FALSE(LoadImage("/nonexistent.pgm", &image, &error));
  EXPECT_EQ(error, "cannot read /nonexistent.pgm: No such file or directory");
  EXPECT_FALSE(LoadImage("/tmp", &image, &error));
  EXPECT_EQ(error, "cannot read /tmp: Is a directory");
}

TEST(ImageTest, RejectsWhatIsNoImage) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("the file is empty"));
  EXPECT_THAT(ErrorOf("GIF89a"), HasSubstr("neither a PNG nor a PGM"));
  EXPECT_THAT(ErrorOf("P"), HasSubstr("neither a PNG nor a PGM"));
  EXPECT_THAT(ErrorOf("P6 1 1 255 abc"), HasSubstr("a colour image (PPM)"));
}

TEST(ImageTest, RejectsBadHeaders) {
  EXPECT_THAT(ErrorOf("P5"), HasSubstr("its header lacks width, height or maximum"));
  EXPECT_THAT(ErrorOf("P5 # 3 3 255"), HasSubstr("its header lacks"));
  EXPECT_THAT(ErrorOf("P5 -3 3 255 "), HasSubstr("its header lacks"));
  EXPECT_THAT(ErrorOf("P5 0 3 255 "), HasSubstr("no pixels: it is 0 x 3"));
  EXPECT_THAT(ErrorOf("P5 3 0 255 "), HasSubstr("no pixels: it is 3 x 0"));
  EXPECT_THAT(ErrorOf("P5 3 3 0 "), HasSubstr("maximum of 0 is not from 1 to 65535"));
  EXPECT_THAT(ErrorOf("P5 3 3 65536 "), HasSubstr("maximum of 65536"));
  EXPECT_THAT(ErrorOf("P5 100000 100000 255 "), HasSubstr("too large: 100000 x 100000"));
  EXPECT_THAT(ErrorOf("P5 9999999999 9999999999 255 "), HasSubstr("too large"));
}

TEST(ImageTest, RejectsTruncatedImages) {
  EXPECT_THAT(ErrorOf("P5 3 3 255 abcd"), HasSubstr("truncated: 4 of 9 pixels"));
  EXPECT_THAT(ErrorOf("P5 3 3 256 abcd"), HasSubstr("truncated: 2 of 9 pixels"));
  EXPECT_THAT(ErrorOf("P2 3 1 9 1 2"), HasSubstr("truncated: 2 of 3 pixels"));
  EXPECT_THAT(ErrorOf("P2 3 1 9 1 2 12"), HasSubstr("pixel 2 is 12, above the image's maximum"));
  EXPECT_THAT(ErrorOf(ReadSample().substr(0, 1000)), HasSubstr("damaged or truncated"));
  EXPECT_THAT(ErrorOf(ReadSample().substr(0, 20)), HasSubstr("PNG"));
}

TEST(ImageTest, SaysWhyAPictureCannotBeWritten) {
  std::string error;
  EXPECT_FALSE(SaveHeatMap("/nonexistent/x.png", Image{1, 1, {0}}, &error));
  EXPECT_THAT(error, StartsWith("cannot write /nonexistent/x.png: "));
}

// ---- The solver

Image Pattern(int width, int height) {
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i) {
    image.values.push_back(std::fmod(i * 0.618, 1.0));
  }
  return image;
}

TEST(SolverTest, TakesTheMeanOfFourNeighbours) {
  const Image image{3, 3, {9, 1, 9, 2, 9, 3, 9, 6, 9}};
  const Image result = SolveSerially(image, 1);
  EXPECT_EQ(result.values, (std::vector<double>{9, 1, 9, 2, 3, 3, 9, 6, 9}));
}

TEST(SolverTest, KeepsTheEdge) {
  const Image image = Pattern(7, 5);
  const Image result = SolveSerially(image, 40);
  for (int row = 0; row < 5; ++row) {
    for (int column = 0; column < 7; ++column) {
      if (row == 0 || row == 4 || column == 0 || column == 6) {
        EXPECT_EQ(result.values[row * 7 + column], image.values[row * 7 + column]);
      }
    }
  }
}

TEST(SolverTest, NoStepsChangeNothing) {
  const Image image = Pattern(4, 4);
  EXPECT_EQ(SolveSerially(image, 0).values, image.values);
}

TEST(SolverTest, RowsInAnyOrderGiveTheSameBits) {
  const Image image = Pattern(33, 20);
  std::vector<double> pieces = image.values;
  for (const auto& [first, last] : {std::pair{10, 19}, {1, 2}, {2, 10}}) {
    examples::JacobiRows(image.values.data(), pieces.data(), 33, first, last);
  }
  EXPECT_EQ(pieces, SolveSerially(image, 1).values);
}

}  // namespace
}  // namespace heat2d
