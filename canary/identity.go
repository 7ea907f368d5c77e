package canary

// MaxID is how many bytes an identity may have.
const MaxID = 128
