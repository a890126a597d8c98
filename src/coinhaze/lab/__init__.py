"""What privacy technologies gain, and what they cost, in one economy with and without them."""
