// The `main` of every test executable. Run by hand as by CTest, tests keep their compiled kernels in the build tree.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("TENON_CACHE", TENON_TEST_CACHE, /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
