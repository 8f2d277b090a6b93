/** The functions of sodium-native that this project uses; the package ships no types. */
declare module 'sodium-native' {
  const sodium: {
    readonly crypto_sign_SECRETKEYBYTES: number;
    crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Buffer): void;
    crypto_sign_detached(signature: Buffer, message: Buffer, secretKey: Buffer): void;
    crypto_sign_verify_detached(signature: Buffer, message: Buffer, publicKey: Buffer): boolean;
    crypto_box_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Buffer): void;
    /** Throws if the public key has small order. */
    crypto_box_easy(
      box: Buffer,
      text: Buffer,
      nonce: Buffer,
      publicKey: Buffer,
      secretKey: Buffer,
    ): void;
    crypto_box_open_easy(
      text: Buffer,
      box: Buffer,
      nonce: Buffer,
      publicKey: Buffer,
      secretKey: Buffer,
    ): boolean;
  };
  export = sodium;
}
