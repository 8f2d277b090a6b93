/** The four functions of sodium-native that this project uses; the package ships no types. */
declare module 'sodium-native' {
  const sodium: {
    readonly crypto_sign_SECRETKEYBYTES: number;
    crypto_sign_seed_keypair(publicKey: Buffer, secretKey: Buffer, seed: Buffer): void;
    crypto_sign_detached(signature: Buffer, message: Buffer, secretKey: Buffer): void;
    crypto_sign_verify_detached(signature: Buffer, message: Buffer, publicKey: Buffer): boolean;
  };
  export = sodium;
}
