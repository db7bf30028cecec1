"""Training and scoring on Apache Spark."""
