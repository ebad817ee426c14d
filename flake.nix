{
  description = "File systems in user space: any volume, any layer, any server";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forAll = build: nixpkgs.lib.genAttrs systems (system: build nixpkgs.legacyPackages.${system});
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
    in
    {
      packages = forAll (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "volary";
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "-p" "volary-cli" ];
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # The tests want mounts, guests and other people's tools: `cargo xtask test`.
          doCheck = false;
          postInstall = ''
            $out/bin/volary man man
            installManPage man/*.1
            for shell in bash zsh fish; do
              $out/bin/volary completions $shell > volary.$shell
            done
            installShellCompletion volary.bash volary.zsh volary.fish
          '';
          meta = {
            description = "File systems in user space: any volume, any layer, any server";
            homepage = manifest.repository;
            license = nixpkgs.lib.licenses.mit;
            mainProgram = "volary";
            platforms = systems;
          };
        };
      });

      apps = forAll (pkgs: {
        default = {
          type = "app";
          program = "${self.packages.${pkgs.system}.default}/bin/volary";
        };
      });
    };
}
